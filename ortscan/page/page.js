// Filters the loops by the search field, and shows a drawing at full size on a click.
const field = document.querySelector(".ortscan input[type=search]");
if (field) field.addEventListener("input", () => {
  const wanted = field.value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const loop of document.querySelectorAll(".ortscan details.loop")) {
    const text = loop.dataset.text;
    loop.classList.toggle("none", !wanted.every(word => text.includes(word)));
  }
});
for (const sheet of document.querySelectorAll(".ortscan .sheet"))
  sheet.addEventListener("click", () => sheet.classList.toggle("whole"));
