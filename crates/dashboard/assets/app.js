// What a page does by itself. Every page works without: links, forms, and times in UTC.
"use strict";

const words = document.body.dataset;

document.documentElement.classList.add("js");

// An id is copied by its button, without a way to its page.
document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  try {
    await navigator.clipboard.writeText(button.dataset.copy);
    button.classList.add("done");
    setTimeout(() => button.classList.remove("done"), 1000);
  } catch {
    // Without TLS a browser may refuse; the id can be selected.
  }
});

// Times: the page says UTC, the browser knows where its reader is.
const two = (n) => String(n).padStart(2, "0");
function local(root) {
  const today = new Date().toDateString();
  for (const time of root.querySelectorAll("time[datetime]")) {
    const at = new Date(time.dateTime);
    if (Number.isNaN(at.getTime())) continue;
    const day = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
    const clock = `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
    time.title = `${day} ${clock} · ${time.dateTime}`;
    if (time.dataset.as === "at") time.textContent = `${day} ${clock}`;
    if (time.dataset.as === "clock") {
      time.textContent = at.toDateString() === today ? clock : `${day.slice(5)} ${clock.slice(0, 5)}`;
    }
  }
}

// Live: one stream per tab says when something changed; then the page is fetched again and its middle replaced. A tab that
// nobody sees has no stream, and a page in which somebody writes or reads a selection stays as it is.
const dot = document.querySelector(".live");
let stream = null;
let paused = sessionStorage.getItem("paused") === "1";
let fetching = false;
// Something happened while a page was on its way, which therefore may not show it.
let again = false;

function busy() {
  const at = document.activeElement;
  if (at && at.closest("main") && at.matches("input, select, textarea")) return true;
  if (document.querySelector("dialog[open], main input[type=checkbox]:checked")) return true;
  const selection = getSelection();
  return Boolean(selection && !selection.isCollapsed);
}

async function refresh() {
  if (fetching) again = true;
  if (fetching || busy()) return;
  fetching = true;
  try {
    const answer = await fetch(location.href, { headers: { accept: "text/html" } });
    if (answer.redirected || !answer.ok) return;
    const next = new DOMParser().parseFromString(await answer.text(), "text/html");
    if (busy()) return;
    for (const id of ["main", "nav"]) {
      const [there, here] = [next.getElementById(id), document.getElementById(id)];
      if (!there || !here) continue;
      const open = [...here.querySelectorAll("details")].map((one) => one.open);
      const rolled = [...here.querySelectorAll(".scroll")].map((one) => one.scrollLeft);
      const focus = document.activeElement;
      const place = here.contains(focus) ? focus.getAttribute("href") : null;
      here.replaceChildren(...there.childNodes);
      here.querySelectorAll("details").forEach((one, i) => (one.open = open[i] ?? one.open));
      here.querySelectorAll(".scroll").forEach((one, i) => (one.scrollLeft = rolled[i] ?? 0));
      if (place) [...here.querySelectorAll("a")].find((a) => a.getAttribute("href") === place)?.focus();
      local(here);
    }
  } catch {
    // The server is away; the stream says so and comes again by itself.
  } finally {
    fetching = false;
    if (again) {
      again = false;
      refresh();
    }
  }
}

function follow() {
  const wanted = words.live && !document.hidden && !paused;
  if (wanted && !stream) {
    stream = new EventSource(words.live);
    stream.addEventListener("changed", refresh);
    let lost = false;
    stream.onopen = () => {
      tell("on", words.liveOn);
      // What happened while the server was away was told to nobody.
      if (lost) refresh();
      lost = false;
    };
    stream.onerror = () => {
      lost = true;
      tell("", words.liveOff);
    };
  } else if (!wanted && stream) {
    stream.close();
    stream = null;
  }
  if (paused) tell("", words.livePaused);
}

function tell(state, text) {
  if (!dot) return;
  dot.hidden = !words.live;
  dot.classList.toggle("on", state === "on");
  dot.textContent = text;
}

function pause() {
  paused = !paused;
  sessionStorage.setItem("paused", paused ? "1" : "0");
  follow();
  if (!paused) refresh();
}

dot?.addEventListener("click", pause);
document.addEventListener("visibilitychange", () => {
  follow();
  // Nobody told a hidden tab what happened.
  if (stream) refresh();
});
addEventListener("pagehide", () => {
  stream?.close();
  stream = null;
});
addEventListener("pageshow", follow);

// Keys: "/" finds, "?" shows all of them, "g" and a letter go to a page.
const help = document.getElementById("help");
let going = 0;
document.addEventListener("keydown", (event) => {
  const in_field = event.target instanceof Element && event.target.matches("input, select, textarea");
  if (event.key === "Escape" && in_field) event.target.blur();
  if (in_field || event.ctrlKey || event.metaKey || event.altKey) return;
  if (Date.now() - going < 1500) {
    going = 0;
    const link = document.querySelector(`a[data-key="${CSS.escape(event.key)}"]`);
    if (link) {
      event.preventDefault();
      link.click();
    }
    return;
  }
  const field = document.querySelector("main input[name=q]") ?? document.querySelector("input[name=q]");
  if (event.key === "/" && field) {
    event.preventDefault();
    field.focus();
    field.select();
  } else if (event.key === "?" && help) {
    event.preventDefault();
    help.showModal();
  } else if (event.key === "g") {
    going = Date.now();
  } else if (event.key === "p") {
    pause();
  }
});

// A filter that is picked is used at once.
document.addEventListener("change", (event) => {
  if (event.target instanceof Element && event.target.matches("select[data-go]")) event.target.form.submit();
});

// On a phone the way to the pages is a line that is longer than the screen.
const nav = document.getElementById("nav");
const here = nav?.querySelector("[aria-current]");
if (here) nav.scrollLeft = here.offsetLeft - (nav.clientWidth - here.offsetWidth) / 2;

local(document);
follow();
