// Runs models on one execution provider of onnxruntime-web in headless Chromium: node child.mjs HOW JOBS, a line of JSON for each job.
import { createRequire } from "node:module";
import fs from "node:fs";
import http from "node:http";
import path from "node:path";

const how = JSON.parse(process.argv[2]);
const jobs = JSON.parse(fs.readFileSync(process.argv[3], "utf8"));
const { chromium } = createRequire(path.join(how.folder, "package.json"))("playwright-core");

const TYPES = { ".html": "text/html", ".js": "text/javascript", ".mjs": "text/javascript", ".wasm": "application/wasm" };
const PAGE = '<script src="/node_modules/onnxruntime-web/dist/ort.webgpu.min.js"></script>';
const isolated = { "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Embedder-Policy": "require-corp" };
const server = http.createServer((asked, answer) => {
  const place = decodeURIComponent(asked.url.split("?")[0]);
  const file = place.startsWith("/node_modules/") ? path.join(how.folder, place) : place;
  const type = place === "/" ? "text/html" : TYPES[path.extname(file)] ?? "application/octet-stream";
  if (place !== "/" && !fs.existsSync(file)) return answer.writeHead(404).end();
  answer.writeHead(200, { "Content-Type": type, ...isolated });
  answer.end(place === "/" ? PAGE : fs.readFileSync(file));
});
await new Promise((done) => server.listen(0, "127.0.0.1", done));

const flags = ["--no-sandbox", "--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader", "--enable-features=Vulkan"];
const browser = await chromium.launch({ executablePath: how.browser, headless: true, args: flags });
let lines = [];
async function fresh() {
  const page = await browser.newPage();
  page.on("console", (message) => lines.push(message.text()));
  await page.goto(`http://127.0.0.1:${server.address().port}/`);
  return page;
}
let page = await fresh();
const adapter = await page.evaluate(async () => {
  const found = await navigator.gpu?.requestAdapter();
  return found ? `${found.info.vendor} ${found.info.architecture} ${found.info.description}`.trim() : "no WebGPU adapter";
});
const versions = await page.evaluate(() => ort.env.versions.web);
console.log(JSON.stringify({ versions: `onnxruntime-web ${versions}, Chromium ${browser.version()}`, adapter }));

function places(log) {
  const found = {};
  let provider = null;
  for (const line of log) {
    // a graph that is in one place as a whole is not listed node by node
    const whole = line.match(/All nodes placed on \[(\w+)\]\. Number of nodes: (\d+)/);
    if (whole) (found[whole[1]] ??= {})["*"] = (found[whole[1]]["*"] ?? 0) + Number(whole[2]);
    const part = line.match(/Node\(s\) placed on \[(\w+)\]/);
    if (part) found[(provider = part[1])] ??= {};
    const node = line.match(/VerifyEachNodeIsAssignedToAnEp\] {2,}(\S+) \(/);
    if (node && provider) found[provider][node[1]] = (found[provider][node[1]] ?? 0) + 1;
  }
  return found;
}

async function inPage(job) {
  const arrays = { float32: Float32Array, int64: BigInt64Array, int32: Int32Array, bool: Uint8Array, float64: Float64Array, uint8: Uint8Array,
                   int8: Int8Array, float16: globalThis.Float16Array ?? Uint16Array };
  const bytes = async (place) => new Uint8Array(await (await fetch(place)).arrayBuffer());
  const feeds = {};
  for (const each of job.raw) feeds[each.name] = new ort.Tensor(each.dtype, new arrays[each.dtype]((await bytes(each.file)).buffer), each.shape);
  ort.env.wasm.numThreads = 1;
  const options = { executionProviders: [job.provider], logSeverityLevel: job.look ? 0 : 4 };
  ort.env.logLevel = job.look ? "verbose" : "error";
  const results = [];
  const sessions = [];
  for (const model of job.models) {
    const said = {};
    results.push(said);
    sessions.push(null);
    let session;
    try {
      const start = performance.now();
      session = await ort.InferenceSession.create(await bytes(model), options);
      said.loading = performance.now() - start;
    } catch (error) {
      said.refused = String(error);
      continue;
    }
    if (job.look) { await session.release(); continue; }
    try {
      const found = await session.run(feeds);
      said.outputs = session.outputNames.map((name) => {
        const { type, dims, data } = found[name];
        const raw = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
        let text = "";
        for (let at = 0; at < raw.length; at += 8192) text += String.fromCharCode(...raw.subarray(at, at + 8192));
        return { dtype: type, shape: dims, base64: btoa(text) };
      });
      sessions[sessions.length - 1] = session;
    } catch (error) {
      said.failed = String(error);
    }
  }
  const times = results.map(() => []);
  for (let run = 0; run < (job.look ? 0 : job.runs); run++)
    for (let at = 0; at < sessions.length; at++)
      if (sessions[at]) {
        const start = performance.now();
        const found = await sessions[at].run(feeds);
        for (const name of sessions[at].outputNames) found[name].data;
        times[at].push(performance.now() - start);
      }
  times.forEach((taken, at) => { if (taken.length) results[at].ms = taken.sort((a, b) => a - b)[Math.floor(taken.length / 2)]; });
  for (const session of sessions) if (session) await session.release();
  return results;
}

for (const job of jobs) {
  console.log(JSON.stringify({ begun: job.name }));
  try {
    const results = [];
    for (const model of job.models) {
      lines = [];
      const [looked] = await page.evaluate(inPage, { ...job, models: [model], provider: how.provider, look: true });
      const where = places(lines);
      const copies = Object.values(where).reduce((sum, ops) => sum + (ops.MemcpyFromHost ?? 0) + (ops.MemcpyToHost ?? 0), 0);
      for (const ops of Object.values(where)) { delete ops.MemcpyFromHost; delete ops.MemcpyToHost; }
      results.push({ ...looked, places: where, copies });
    }
    const ran = await page.evaluate(inPage, { ...job, provider: how.provider, look: false });
    ran.forEach((one, at) => Object.assign(results[at], one));
    console.log(JSON.stringify({ name: job.name, results }));
  } catch (error) {
    console.log(JSON.stringify({ name: job.name, results: job.models.map(() => ({ failed: `the page ended: ${error}` })) }));
    page = await fresh();
  }
}
await browser.close();
server.close();
