export { TestClock } from "./clock.js";
export { type IdleOptions, type Ran, runUntilIdle } from "./idle.js";
export { assertPushed, type PushedQuery, pushed } from "./pushed.js";
export { type ServerOptions, startServer, TestServer } from "./server.js";
