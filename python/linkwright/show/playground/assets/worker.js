// The engine in a worker. It answers one request after the other; when it breaks off, another instance takes its place.
"use strict";
let module, engine, shelf, asking;

// What the engine asks of its page: a clock, and to pass on what a search has found so far.
const page = {
  now_ms: () => performance.now(),
  improved: (at, length) => postMessage({ id: asking, improved: JSON.parse(text(at, length)) }),
};

async function start() {
  engine = (await WebAssembly.instantiate(module, { page })).exports;
  ask({ ask: "shelf", ...shelf });
}

function text(at, length) {
  return new TextDecoder().decode(new Uint8Array(engine.memory.buffer, at, length));
}

const answer = () => JSON.parse(text(engine.lw_text(), engine.lw_length()));

function ask(request) {
  const bytes = new TextEncoder().encode(JSON.stringify(request));
  const at = engine.lw_room(bytes.length);
  new Uint8Array(engine.memory.buffer, at, bytes.length).set(bytes);
  engine.lw_ask();
  return answer();
}

// What is left of a panic; out of memory leaves nothing.
function last(error) {
  try {
    const found = answer();
    if (found.error) return found;
  } catch { /* no message */ }
  return { error: `the engine broke off (${error.message}), probably for lack of memory: ask for fewer ranks` };
}

async function answered(request) {
  try {
    return ask(request);
  } catch (error) {
    const found = last(error);
    await start();
    return found;
  }
}

let turn = Promise.resolve();
onmessage = ({ data }) => {
  turn = turn.then(async () => {
    if (data.engine) {
      module = await WebAssembly.compile(data.engine);
      shelf = data.shelf;
      await start();
    }
    asking = data.id;
    postMessage({ id: data.id, ...(await answered(data.request)) });
  });
};
