// A collector in Node: takes an account for as long as a session lives, gives it back, takes the next.
//
// node collector.mjs --site ws://127.0.0.1:PORT --name collector-1

import { parseArgs } from "node:util";
import { hold } from "./tenure.mjs";

// Node has a WebSocket of its own from version 22 on.
const Socket = globalThis.WebSocket ?? (await import("./websocket.mjs")).WebSocket;
const { site, name } = parseArgs({ options: { site: { type: "string" }, name: { type: "string" } } }).values;

// For how long the site may take a session for open whose connection broke.
const SITE_FORGETS_AFTER = "4s";

// Sends a message and returns the answer; throws if the connection breaks.
function ask(socket, message) {
  return new Promise((resolve, reject) => {
    socket.onmessage = (event) => resolve(JSON.parse(event.data));
    socket.onclose = () => reject(new Error("the site closed the connection"));
    if (socket.readyState !== 1) reject(new Error("the site closed the connection"));
    else socket.send(JSON.stringify(message));
  });
}

function open(url) {
  return new Promise((resolve, reject) => {
    const socket = new Socket(url);
    socket.onopen = () => resolve(socket);
    socket.onerror = () => reject(new Error("the site cannot be reached"));
  });
}

let stopping = false;
let working = false;
process.on("SIGTERM", () => {
  // The session ends, and its account is given back; a wait for an account ends with the process.
  stopping = true;
  if (!working) process.exit(0);
});

async function collect({ resources: [account], fence }, lost) {
  const rest = [{ pool: "accounts", id: account.id, verdict: "cool", for: SITE_FORGETS_AFTER }];
  let socket;
  try {
    socket = await open(site);
    const login = { login: account.id, token: account.data.token, fence, who: name };
    const { refused } = await ask(socket, login);
    if (refused) {
      console.log(`the site refused ${account.id}: ${refused}`);
      return rest;
    }
    for (let page = 4 + Math.floor(Math.random() * 17); page > 0 && !lost.aborted && !stopping; page--) {
      await ask(socket, { page: "next" });
    }
    if (lost.aborted) console.log(`${account.id} may be another's soon: leaving`);
    await ask(socket, { logout: true });
  } catch (error) {
    console.log(`the session of ${account.id} ended: ${error.message}`);
    // The site may think that we are still in: let the account rest before the next login.
    return rest;
  } finally {
    socket?.close();
  }
}

while (!stopping) {
  await hold([{ pool: "accounts" }], 2_000, async (lease, lost) => {
    working = true;
    try {
      return await collect(lease, lost);
    } finally {
      working = false;
    }
  });
}
process.exit(0);
