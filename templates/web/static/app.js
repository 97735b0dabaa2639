// What pages gain from a script: they follow what happens, and answer to keys. Without it everything works, too.
"use strict";
const { csrf, person } = document.currentScript.dataset;
const $ = (selector, inside = document) => inside.querySelector(selector);
const all = (selector, inside = document) => [...inside.querySelectorAll(selector)];
const say = (text) => { $("#live-state").textContent = text; };

// A page that tells why a form was refused stands at the form's address; loaded again, it is the page itself.
const { at } = document.body.dataset;
if (at && location.pathname !== at) history.replaceState(null, "", at);

// -- live: load the page again and change only what differs, so that place, focus and typed text stay ----------

// A node is the same one when it means the same, wherever it stands now.
const key = (node) => node.id || (node.name && node.value !== "" && node.tagName === "BUTTON" ? `${node.name}=${node.value}` : "");

function morph(old, now) {
  if (old.isEqualNode(now)) return;
  if (old.nodeName !== now.nodeName || old.nodeType !== Node.ELEMENT_NODE || key(old) !== key(now)) {
    old.replaceWith(now);
    return;
  }
  // A form that somebody may be filling in changes only when what it asks changed.
  if (old.dataset.version !== undefined && old.dataset.version === now.dataset.version) return;
  const kept = (name) => name === "open" && old.nodeName === "DETAILS";
  for (const { name } of [...old.attributes]) if (!now.hasAttribute(name) && !kept(name)) old.removeAttribute(name);
  for (const { name, value } of now.attributes)
    if (old.getAttribute(name) !== value && !kept(name)) old.setAttribute(name, value);
  const known = new Map([...old.children].filter(key).map((child) => [key(child), child]));
  let place = old.firstChild;
  for (const child of [...now.childNodes]) {
    const here = place && !key(place) && place.nodeName === child.nodeName ? place : null;
    const same = key(child) ? known.get(key(child)) : here;
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

function show(text) {
  const now = new DOMParser().parseFromString(text, "text/html");
  const focused = document.activeElement, row = focused?.closest(".rows > li")?.id;
  const said = all(".said").length;
  for (const region of all("[data-live]")) {
    const fresh = now.getElementById(region.id);
    if (fresh) morph(region, fresh);
  }
  document.title = now.title;
  // Moving a node takes its focus, and a button may have become another one.
  if (focused !== document.activeElement) {
    const again = focused.isConnected ? focused : document.getElementById(focused.id) ?? $(`[id="${row}"] > a`);
    again?.focus({ preventScroll: true });
  }
  if (all(".said").length > said) $("#news").textContent = `New message from ${all(".said .meta b").at(-1)?.textContent}`;
  readSoon();
}

const follows = new Set(["stopped", "reset", ...document.body.dataset.follow.split(" ").filter(Boolean)]);
let loading = false, again = false, timer = 0, pressed = 0;
async function refresh() {
  if (loading) { again = true; return; }
  loading = true;
  const before = pressed;
  try {
    const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
    const text = await answer.text();
    if (before !== pressed) again = true; // a key has changed the page meanwhile: this one is older
    else if (answer.redirected) { if (new URL(answer.url).pathname === "/login") location.replace("/login"); } // logged out
    else if (answer.ok) show(text);
    else if (answer.status === 404 && $("#head")) location.replace("/"); // deleted
  } catch { /* the stream says when the server is back */ } finally {
    loading = false;
    if (again) { again = false; soon(); }
  }
}
function soon() {
  if (!timer) timer = setTimeout(() => { timer = 0; refresh(); }, 250);
}

const here = $("#head")?.dataset.thread;
let stream = null;
function follow() {
  if (stream || document.hidden) return;
  const mine = stream = new EventSource("/events");
  let lost = false;
  // What happened between the making of this page and now was told to nobody.
  mine.onopen = () => { if (lost) say(""); lost = false; refresh(); };
  mine.onerror = () => {
    lost = true;
    say("Live updates paused; trying again…");
    if (mine.readyState !== EventSource.CLOSED) return;
    stream = null;
    refresh();
    setTimeout(follow, 5000);
  };
  for (const kind of follows)
    mine.addEventListener(kind, (event) => {
      const thread = JSON.parse(event.data).thread_id;
      if (!here || !thread || thread === here) soon();
    });
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
  if (reading < 0 || !$("#head")?.hasAttribute("data-unread")) return;
  reading = setTimeout(async () => {
    const last = all(".said").at(-1);
    if (document.hidden || !last || last.getBoundingClientRect().top > innerHeight) return;
    const body = new URLSearchParams({ csrf });
    const answer = await fetch(`/threads/${here}/read`, { method: "POST", body, redirect: "manual" }).catch(() => null);
    if (answer?.type === "opaqueredirect") refresh();
    else if (answer) reading = -1; // refused: a login in another tab made this page too old
  }, 4000);
}
addEventListener("scrollend", () => readSoon());

// -- forms: a draft is kept until it was taken, a second click does nothing, a changed argument shows -------------

const sent = new URLSearchParams(location.search).get("sent");
if (sent) {
  const taken = JSON.parse(sessionStorage.getItem("sending") ?? "{}");
  if (taken.key === sent) sessionStorage.removeItem(taken.draft);
  const url = new URL(location.href);
  url.searchParams.delete("sent");
  history.replaceState(null, "", url);
}
for (const form of all("form[data-draft]")) {
  const text = $("textarea", form), draft = `draft ${person} ${form.dataset.draft}`;
  if (!text.value) text.value = sessionStorage.getItem(draft) ?? "";
  text.addEventListener("input", () => sessionStorage.setItem(draft, text.value));
  text.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); form.requestSubmit(); }
  });
  form.addEventListener("submit", () => sessionStorage.setItem("sending", JSON.stringify({ draft, key: form.elements.key.value })));
}
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.method === "dialog") return;
  if (form.getAttribute("action") === "/logout") sessionStorage.clear();
  if (form.dataset.sent) return event.preventDefault();
  form.dataset.sent = "yes";
  setTimeout(() => { delete form.dataset.sent; }, 3000);
});
document.addEventListener("input", ({ target }) => {
  const field = target.closest(".field");
  if (!field || !target.name?.startsWith("arg.")) return;
  const chosen = target.options && [...target.options].find((option) => option.defaultSelected)?.value;
  const before = field.dataset.proposed ?? (target.type === "checkbox" ? String(target.defaultChecked) : chosen ?? target.defaultValue);
  field.classList.toggle("changed", (target.type === "checkbox" ? String(target.checked) : target.value) !== before);
});

// -- keys ----------------------------------------------------------------------------------------------------------

const dialog = $("#keys"), on = $("#keys-on");
on.checked = localStorage.getItem("keys") !== "off";
on.addEventListener("change", () => localStorage.setItem("keys", on.checked ? "on" : "off"));
$("#show-keys").hidden = false;
$("#show-keys").addEventListener("click", () => dialog.showModal());

function step(by) {
  const links = all(".rows > li > a");
  const at = links.findIndex((link) => link.parentElement === document.activeElement?.closest(".rows > li"));
  links[Math.max(0, Math.min(links.length - 1, at < 0 ? (by > 0 ? 0 : links.length - 1) : at + by))]?.focus();
}
// One after the other: answers that overtake each other would show an older page last.
let pressing = Promise.resolve();
const press = (...names) => { pressing = pressing.then(() => pressNow(...names)).catch(() => say("That did not work.")); };
async function pressNow(...names) {
  const row = document.activeElement?.closest(".rows > li") ?? $("#head");
  const button = row && names.map((name) => $(`button[name="${name}"], button[formaction$="/${name}"]`, row)).find(Boolean);
  if (!button) return;
  if (!row.matches("li")) return button.click();
  const after = row.nextElementSibling ?? row.previousElementSibling;
  const body = new URLSearchParams(new FormData(button.form));
  body.set(button.name, button.value);
  const answer = await fetch(button.form.action, { method: "POST", body });
  const text = await answer.text();
  if (!answer.ok) return say(new DOMParser().parseFromString(text, "text/html").querySelector(".problem")?.textContent ?? "That did not work.");
  history.replaceState(null, "", answer.url);
  pressed += 1;
  show(text);
  $("a", row.isConnected ? row : after ?? document.body)?.focus();
}
const keys = {
  j: () => step(1),
  k: () => step(-1),
  e: () => press("archive", "unarchive"),
  m: () => press("read", "unread"),
  "/": () => $("#q")?.focus(),
  n: () => $("#text")?.focus(),
  u: () => { location.href = "/"; },
  "?": () => dialog.showModal(),
};
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if (event.key === "Escape" && event.target.matches("input, textarea")) return event.target.blur();
  if (!on.checked || event.target.closest("input, textarea, select, dialog")) return;
  if (!(event.key in keys) || (event.repeat && !"jk".includes(event.key))) return;
  event.preventDefault();
  keys[event.key]();
});

follow();
readSoon();
