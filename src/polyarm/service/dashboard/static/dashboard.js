// Replaces parts of the page when the server says that something changed; without scripts the page still shows everything.
"use strict";

async function replace(target, address, dim) {
  if (dim) target.classList.add("busy");
  try {
    const answer = await fetch(address, { headers: { accept: "text/html" } });
    if (!answer.ok || answer.redirected) throw new Error(String(answer.status));
    target.innerHTML = await answer.text();
    return true;
  } catch (error) {
    return false;
  } finally {
    target.classList.remove("busy");
  }
}

function follow(live, connection) {
  const source = new EventSource(live.dataset.events);
  let waiting = false;
  let again = false;
  const say = (text, state) => {
    connection.textContent = text;
    connection.className = "connection " + state;
  };
  const refresh = async () => {
    if (waiting) { again = true; return; }
    waiting = true;
    const focused = live.contains(document.activeElement);
    if (!focused) say((await replace(live, live.dataset.live)) ? "live" : "the last update failed", "on");
    waiting = false;
    if (again) { again = false; setTimeout(refresh, 500); }
  };
  source.addEventListener("open", () => say("live", "on"));
  source.addEventListener("changed", refresh);
  source.addEventListener("error", () => say("connection lost, trying again", "off"));
  window.addEventListener("pagehide", () => source.close());
}

function choose(form, model) {
  let timer;
  const show = () => {
    const query = new URLSearchParams(new FormData(form)).toString();
    replace(model, form.dataset.model + "?" + query, true);
  };
  form.addEventListener("input", (event) => {
    const output = event.target.parentElement.querySelector("output");
    if (output) output.textContent = Number(event.target.value).toPrecision(4);
    clearTimeout(timer);
    timer = setTimeout(show, 120);
  });
  form.addEventListener("submit", (event) => { event.preventDefault(); show(); });
}

const live = document.getElementById("live");
const form = document.getElementById("context");
if (live) follow(live, document.getElementById("connection"));
if (form) choose(form, document.getElementById("model"));
