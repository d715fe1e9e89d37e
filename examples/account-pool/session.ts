// A session with the site, for as long as this process holds an account.

import { on, once } from "node:events";
import WebSocket from "ws";

/** The longest time for which the site keeps a session whose connection broke. */
export const SITE_FORGETS_AFTER = "4s";

export class Session {
  #socket: WebSocket;
  #messages: AsyncIterator<unknown[]>;

  constructor(site: string) {
    this.#socket = new WebSocket(site);
    this.#messages = on(this.#socket, "message", { close: ["close"] });
  }

  async login(account: string, token: string, fence: number, who: string): Promise<void> {
    await once(this.#socket, "open");
    await this.#ask({ login: account, token, fence, who });
  }

  async page(): Promise<void> {
    await this.#ask({ page: "next" });
  }

  async logout(): Promise<void> {
    await this.#ask({ logout: true });
    this.#socket.close();
  }

  async #ask(message: object): Promise<void> {
    this.#socket.send(JSON.stringify(message));
    const { value, done } = await this.#messages.next();
    if (done) throw new Error("the site closed the connection");
    const { refused } = JSON.parse(String(value[0]));
    if (refused) throw new Error(refused);
  }
}
