// Filters the loops by the search field, fits each drawing to the width, and adds buttons to zoom.
const field = document.querySelector(".ortscan input[type=search]");
if (field) field.addEventListener("input", () => {
  const wanted = field.value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const loop of document.querySelectorAll(".ortscan details.loop")) {
    const text = loop.dataset.text;
    loop.classList.toggle("none", !wanted.every(word => text.includes(word)));
  }
});
for (const sheet of document.querySelectorAll(".ortscan .sheet")) {
  const svg = sheet.querySelector("svg"), full = svg.width.baseVal.value;
  const fit = () => { sheet.classList.remove("whole"); svg.style.width = ""; };
  const show = width => { sheet.classList.add("whole"); svg.style.width = `${width}px`; };
  const zoom = factor => show(svg.getBoundingClientRect().width * factor);
  const bar = document.createElement("div");
  bar.className = "zoom";
  const buttons = [["\u2212", "Zoom out", () => zoom(1 / 1.4)], ["+", "Zoom in", () => zoom(1.4)],
    ["Fit", "Fit to the width", fit], ["1:1", "Full size", () => show(full)]];
  for (const [text, title, act] of buttons) {
    const button = Object.assign(document.createElement("button"), { textContent: text, title, type: "button" });
    button.addEventListener("click", act);
    bar.append(button);
  }
  sheet.before(bar);
  sheet.addEventListener("click", () => sheet.classList.contains("whole") ? fit() : show(full));
  fit();
}
