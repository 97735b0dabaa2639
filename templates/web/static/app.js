// What pages gain from a script: they follow what happens, and answer to keys. Without it everything works, too.
"use strict";
const csrf = document.currentScript.dataset.csrf;
const $ = (selector, inside = document) => inside.querySelector(selector);
const all = (selector, inside = document) => [...inside.querySelectorAll(selector)];

// -- live: load the page again and change only what differs, so that place, focus and typed text stay ----------

function morph(old, now) {
  if (old.isEqualNode(now)) return;
  if (old.nodeName !== now.nodeName || old.nodeType !== Node.ELEMENT_NODE || (old.id || "") !== (now.id || "")) {
    old.replaceWith(now);
    return;
  }
  // A form that somebody may be filling in changes only when what it asks changed.
  if (old.dataset?.version !== undefined && old.dataset.version === now.dataset.version) return;
  for (const { name } of [...old.attributes])
    if (!now.hasAttribute(name) && !(name === "open" && old.nodeName === "DETAILS")) old.removeAttribute(name);
  for (const { name, value } of now.attributes)
    if (old.getAttribute(name) !== value && !(name === "open" && old.nodeName === "DETAILS")) old.setAttribute(name, value);
  const known = new Map([...old.children].filter((child) => child.id).map((child) => [child.id, child]));
  let place = old.firstChild;
  for (const child of [...now.childNodes]) {
    const same = child.id ? known.get(child.id) : place && !place.id && place.nodeName === child.nodeName ? place : null;
    if (!same) {
      old.insertBefore(child, place);
      continue;
    }
    if (same === place) place = place.nextSibling;
    else old.insertBefore(same, place);
    morph(same, child);
  }
  while (place) {
    const next = place.nextSibling;
    place.remove();
    place = next;
  }
}

let loading = false, again = false, timer = 0;
async function refresh() {
  if (loading) { again = true; return; }
  loading = true;
  try {
    const answer = await fetch(location.href, { headers: { Accept: "text/html" }, redirect: "manual" });
    if (answer.type === "opaqueredirect") return location.reload(); // logged out
    if (!answer.ok) return answer.status === 404 ? location.reload() : undefined;
    const now = new DOMParser().parseFromString(await answer.text(), "text/html");
    const focused = document.activeElement;
    for (const region of all("[data-live]")) {
      const fresh = now.getElementById(region.id);
      if (fresh) morph(region, fresh);
    }
    document.title = now.title;
    if (focused !== document.activeElement && focused?.id) document.getElementById(focused.id)?.focus();
    readSoon();
  } catch { /* the stream says when the server is back */ } finally {
    loading = false;
    if (again) { again = false; soon(); }
  }
}
function soon() {
  if (!timer) timer = setTimeout(() => { timer = 0; refresh(); }, 250);
}

const here = $("#head")?.dataset.thread;
const shows = (happened) => !here || !happened.thread_id || happened.thread_id === here;
let stream = null;
function follow() {
  if (stream || document.hidden || !$("[data-live]")) return;
  stream = new EventSource("/events");
  let lost = false;
  const say = (text) => { $("#live-state").textContent = text; };
  stream.onopen = () => { say(""); if (lost) refresh(); lost = false; };
  stream.onerror = () => {
    lost = true;
    say("Live updates paused; trying again…");
    if (stream.readyState === EventSource.CLOSED) { stream = null; refresh(); setTimeout(follow, 5000); }
  };
  for (const kind of ["message", "thread", "run", "action", "activity", "delivered", "servers", "stopped", "reset"])
    stream.addEventListener(kind, (event) => { if (event.data && shows(JSON.parse(event.data))) soon(); });
}
// A hidden tab gives its connection back: browsers have six for all tabs together.
document.addEventListener("visibilitychange", () => {
  if (document.hidden) { stream?.close(); stream = null; } else { follow(); refresh(); }
});
addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });
addEventListener("pagehide", () => { stream?.close(); stream = null; });

// -- reading: what was in front of its owner for some seconds was read ------------------------------------------

let reading = 0;
function readSoon() {
  clearTimeout(reading);
  if (!$("#head")?.hasAttribute("data-unread")) return;
  reading = setTimeout(async () => {
    if (document.hidden || !$("#head").hasAttribute("data-unread")) return;
    await fetch(`/threads/${here}/read`, { method: "POST", body: new URLSearchParams({ csrf }), redirect: "manual" });
    refresh();
  }, 4000);
}

// -- forms: a draft survives, a second click does nothing, a changed argument shows -------------------------------

for (const form of all("form[data-draft]")) {
  const text = $("textarea", form), name = `draft ${form.dataset.draft}`;
  if (!text.value) text.value = sessionStorage.getItem(name) ?? "";
  text.addEventListener("input", () => sessionStorage.setItem(name, text.value));
  text.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); form.requestSubmit(); }
  });
  form.addEventListener("submit", () => sessionStorage.removeItem(name));
}
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.method === "dialog") return;
  if (form.getAttribute("action") === "/logout") sessionStorage.clear();
  if (form.dataset.sent) return event.preventDefault();
  form.dataset.sent = "yes";
  setTimeout(() => { delete form.dataset.sent; }, 3000);
});
document.addEventListener("input", (event) => {
  const field = event.target.closest(".field"), input = event.target;
  if (!field || !input.name?.startsWith("arg.")) return;
  const before = input.type === "checkbox" ? input.defaultChecked : input.defaultValue;
  const chosen = input.options && [...input.options].find((option) => option.defaultSelected)?.value;
  field.classList.toggle("changed", (input.type === "checkbox" ? input.checked : input.value) !== (chosen ?? before));
});

// -- keys ----------------------------------------------------------------------------------------------------------

const on = $("#keys-on");
if (on) {
  on.checked = localStorage.getItem("keys") !== "off";
  on.addEventListener("change", () => localStorage.setItem("keys", on.checked ? "on" : "off"));
}
function step(by) {
  const links = all(".rows > li > a");
  const row = document.activeElement?.closest(".rows > li");
  const at = links.findIndex((link) => link.parentElement === row);
  links[Math.max(0, Math.min(links.length - 1, at < 0 ? (by > 0 ? 0 : links.length - 1) : at + by))]?.focus();
}
async function press(names) {
  const row = document.activeElement?.closest(".rows > li") ?? $("#head");
  const button = row && names.map((name) => $(`button[name="${name}"], button[formaction$="/${name}"]`, row)).find(Boolean);
  if (!button) return;
  if (!row.matches("li")) return button.click();
  const after = row.nextElementSibling ?? row.previousElementSibling;
  const body = new URLSearchParams(new FormData(button.form));
  body.set(button.name, button.value);
  await fetch(button.form.action, { method: "POST", body, redirect: "manual" });
  await refresh();
  $("a", row.isConnected ? row : after ?? document.body)?.focus();
}
const keys = {
  j: () => step(1),
  k: () => step(-1),
  e: () => press(["archive", "unarchive"]),
  m: () => press(["read", "unread"]),
  "/": () => $("#q")?.focus(),
  n: () => $("#text")?.focus(),
  u: () => { location.href = "/"; },
  "?": () => $("#keys").showModal(),
};
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && event.target.matches("input, textarea")) return event.target.blur();
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if (event.target.closest("input, textarea, select, dialog")) return;
  const act = keys[event.key];
  if (!act || (event.key !== "?" && on && !on.checked)) return;
  event.preventDefault();
  act();
});

follow();
readSoon();
