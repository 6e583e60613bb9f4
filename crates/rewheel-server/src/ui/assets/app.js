// The dashboard without this file works: it adds updates of open pages, keys and copying.
const body = document.body;
const base = body.dataset.base;
const line = document.getElementById("live");
const parse = (html) => new DOMParser().parseFromString(html, "text/html");

// ---- the time zone: once, if no cookie of the visitor names one --------------------------------------------------
if ("askZone" in body.dataset) {
  const zone = encodeURIComponent(Intl.DateTimeFormat().resolvedOptions().timeZone);
  document.cookie = `rewheel_zone=${zone}; path=${base}; max-age=31536000; samesite=strict`;
}
const zoneButton = document.getElementById("own-zone");
if (zoneButton) {
  zoneButton.hidden = false;
  zoneButton.addEventListener("click", () => {
    document.getElementById("zone").value = Intl.DateTimeFormat().resolvedOptions().timeZone;
  });
}

// ---- forms come back to this page -------------------------------------------------------------------------------
const here = location.pathname + location.search;
for (const form of document.querySelectorAll("#theme-form, #ticked")) {
  const field = form.querySelector("[name=next], [name=back]");
  if (field) field.value = here;
}

// A reload of this page must not say again what was done.
if (new URLSearchParams(location.search).has("done")) {
  const url = new URL(location.href);
  url.searchParams.delete("done");
  history.replaceState(null, "", url);
}

// ---- copying ----------------------------------------------------------------------------------------------------
async function copy(text) {
  // Plain HTTP has no clipboard.
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const field = document.createElement("textarea");
  field.value = text;
  body.append(field);
  field.select();
  document.execCommand("copy");
  field.remove();
}
function say(text, state) {
  if (!line) return;
  if (state) line.dataset.state = state;
  if (line.textContent !== text) line.textContent = text;
}
for (const button of document.querySelectorAll("[data-copy]")) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    await copy(document.getElementById(button.dataset.copy).textContent);
    button.textContent = "copied";
  });
}

// ---- updates ----------------------------------------------------------------------------------------------------
// Numbers and texts change in place. Order, rows, focus, ticks and open details stay. Nothing changes under the pointer.
const live = "live" in body.dataset && line;
const freezeButton = document.getElementById("freeze");
// `over`: there will be no more updates. `kept` is the latest page, while a region that differs from it must not change yet.
let over = false, frozen = false, wanted = false, busy = false, kept = null, last = 0, heard = Date.now(), wait = 1000, source = null, timer = 0;

function touched(region) {
  const selection = getSelection();
  const selected = selection && !selection.isCollapsed && region.contains(selection.anchorNode);
  return region.matches(":hover") || selected || (region.contains(document.activeElement) && document.activeElement !== region)
    || region.querySelector("input:checked") !== null;
}
function patchText(old, fresh) {
  if (old.isEqualNode(fresh)) return;
  const open = [...old.querySelectorAll("details")].map((details) => details.open);
  const scrolled = [...old.querySelectorAll(".scroll")].map((box) => box.scrollLeft);
  const reader = old.querySelector("tr.here a")?.getAttribute("href");
  old.replaceChildren(...[...fresh.childNodes].map((node) => document.importNode(node, true)));
  old.className = fresh.className;
  old.querySelectorAll("details").forEach((details, index) => { if (index in open) details.open = open[index]; });
  old.querySelectorAll(".scroll").forEach((box, index) => { if (scrolled[index]) box.scrollLeft = scrolled[index]; });
  if (reader) [...old.querySelectorAll("tr[data-row]")].find((row) => row.querySelector("a")?.getAttribute("href") === reader)?.classList.add("here");
}
function patchRows(table, page) {
  const fresh = page.getElementById(table.id);
  const rows = new Map();
  for (const row of fresh ? fresh.tBodies[0].rows : []) rows.set(row.querySelector("a.id")?.title, row);
  // Ids grow with time: a row below the end of the page was only pushed out by newer ones.
  const oldest = [...rows.keys()].pop() ?? "";
  for (const row of table.tBodies[0].rows) {
    const id = row.querySelector("a.id")?.title;
    const now = rows.get(id);
    rows.delete(id);
    row.classList.toggle("stale", !now && id > oldest);
    if (!now) continue;
    [...row.cells].forEach((cell, index) => {
      if (!cell.classList.contains("tick") && now.cells[index]) patchText(cell, now.cells[index]);
    });
  }
  const newer = document.getElementById("newer");
  // The first job of an empty list is new, too.
  if (newer && rows.size > 0 && !new URLSearchParams(location.search).has("cursor")) {
    newer.hidden = false;
    newer.querySelector("a").textContent = `${rows.size} newer job${rows.size > 1 ? "s" : ""}: show`;
  }
}
function apply(page) {
  let held = false;
  for (const region of document.querySelectorAll("[data-live-region]")) {
    const fresh = page.getElementById(region.id);
    if (!fresh || region.isEqualNode(fresh)) continue;
    if (touched(region)) held = true; else patchText(region, fresh);
  }
  for (const table of document.querySelectorAll("[data-live-rows]")) {
    if (touched(table)) held = true; else patchRows(table, page);
  }
  for (const tabs of document.querySelectorAll(".tabs")) {
    const fresh = page.querySelector(".tabs");
    if (!fresh) continue;
    const counts = fresh.querySelectorAll("a");
    tabs.querySelectorAll("a").forEach((tab, index) => {
      if (!touched(tabs) && counts[index]) patchText(tab, counts[index]);
    });
  }
  const time = page.querySelector("#live time");
  kept = held ? page : null;
  if (held) say("Frozen while you look", "frozen");
  else say(`Live, as of ${time ? time.textContent : ""}`, "live");
}
async function refresh() {
  if (over) return;
  if (busy || frozen || document.hidden) { wanted = true; return; }
  // A page that waits for the pointer to leave is not loaded at the rate of the changes.
  const soonest = last + (kept ? 10000 : 2000) - Date.now();
  if (soonest > 0) { clearTimeout(timer); timer = setTimeout(refresh, soonest); return; }
  busy = true; wanted = false; last = Date.now();
  try {
    const answer = await fetch(location.href, { headers: { Accept: "text/html" }, signal: AbortSignal.timeout(10000) });
    if (answer.redirected && new URL(answer.url).pathname.endsWith("/sign-in")) { signedOut(); return; }
    const page = parse(await answer.text());
    if (!answer.ok) { refused(answer.status, page); return; }
    heard = Date.now();
    apply(page);
  } catch { lost(); } finally { busy = false; }
}
// The server answers, but not with this page: it says why, and an object that has gone will not come back.
function refused(status, page) {
  const why = page.getElementById("problem")?.textContent ?? `The server answered ${status}.`;
  if ([403, 404, 410].includes(status)) {
    over = true;
    drop();
    say(`No more updates: ${why}`, "over");
  } else say(`Not updated: ${why} Trying again.`, "lost");
}
function lost() {
  const since = new Date(heard).toLocaleTimeString();
  say(`No news since ${since}; the numbers are old. Trying again.`, "lost");
}
function signedOut() {
  over = true;
  source?.close();
  say("Signed out. ", "lost");
  const link = document.createElement("a");
  link.href = `${base}/sign-in?next=${encodeURIComponent(here)}`;
  link.textContent = "Sign in";
  line.append(link);
}
let polls = false;
function poll() {
  if (polls) return;
  polls = true;
  refresh();
  setInterval(refresh, 10000);
}
function connect() {
  if (over || polls || document.hidden || source) return;
  source = new EventSource(`${base}/live`);
  const alive = () => { heard = Date.now(); wait = 1000; };
  source.addEventListener("tick", () => { alive(); if (line.dataset.state === "lost") refresh(); else if (!frozen && !kept) line.dataset.state = "live"; });
  source.addEventListener("changed", () => { alive(); refresh(); });
  source.addEventListener("signed-out", signedOut);
  source.addEventListener("bye", () => { drop(); say("The server is restarting.", "lost"); setTimeout(connect, 1000 + Math.random() * 2000); });
  source.addEventListener("error", () => {
    // 204: all streams of this session are in use.
    const refused = source.readyState === EventSource.CLOSED && Date.now() - heard < 3000;
    drop();
    if (refused) { poll(); return; }
    setTimeout(() => { connect(); refresh(); }, wait / 2 + Math.random() * wait / 2);
    wait = Math.min(wait * 2, 30000);
  });
}
function drop() { source?.close(); source = null; }
function freeze() {
  frozen = !frozen;
  freezeButton.textContent = frozen ? "Go on" : "Freeze";
  if (over) return;
  if (frozen) say("Frozen", "frozen"); else refresh();
}
if (live) {
  freezeButton.hidden = false;
  freezeButton.addEventListener("click", freeze);
  connect();
  setInterval(() => { if (source && Date.now() - heard > 12000 && !frozen) lost(); }, 3000);
  // What was held back while the visitor looked.
  setInterval(() => {
    if (frozen || over) return;
    if (kept) apply(kept); else if (wanted) refresh();
  }, 500);
  document.addEventListener("visibilitychange", () => { if (document.hidden) drop(); else { connect(); refresh(); } });
  addEventListener("online", () => { drop(); connect(); refresh(); });
  addEventListener("pagehide", drop);
  document.getElementById("newer")?.querySelector("a").setAttribute("href", here);
}

// ---- keys -------------------------------------------------------------------------------------------------------
// No key changes anything but what this browser shows.
const places = { o: "/", j: "/jobs", i: "/incidents", k: "/kinds", p: "/operations", s: "/schedules", f: "/fleet", a: "/audit" };
let going = false;
function rows() { return [...document.querySelectorAll("tr[data-row]")]; }
function move(by) {
  const all = rows();
  if (!all.length) return;
  const at = all.findIndex((row) => row.classList.contains("here"));
  all[at]?.classList.remove("here");
  const row = all[Math.max(0, Math.min(all.length - 1, at + by))];
  row.classList.add("here");
  row.scrollIntoView({ block: "nearest" });
}
function key(event) {
  const row = document.querySelector("tr.here");
  if (going) { going = false; if (places[event.key]) location.assign(base + places[event.key]); return true; }
  switch (event.key) {
    case "?": location.assign(`${base}/help`); return true;
    case "/": document.getElementById("filter") ? document.getElementById("filter").focus() : location.assign(`${base}/jobs`); return true;
    case "g": going = true; setTimeout(() => { going = false; }, 1500); return true;
    case "j": move(1); return true;
    case "k": move(-1); return true;
    case "x": { const tick = row?.querySelector("input[type=checkbox]"); if (tick) tick.checked = !tick.checked; return true; }
    case "Enter": if (row && document.activeElement === body) { row.querySelector("a")?.click(); return true; } return false;
    case "n": if (!document.getElementById("newer")?.hidden) location.reload(); return true;
    case "[": document.querySelector("[rel=first]")?.click(); return true;
    case "]": document.querySelector("[rel=next]")?.click(); return true;
    case "f": if (live) freeze(); return true;
    case "t": document.getElementById("theme-form")?.requestSubmit(); return true;
    case "y": copy(location.href).then(() => say("Address copied")); return true;
    case "e": case "r": document.querySelector(`[data-key=${event.key}]`)?.click(); return true;
    default: return false;
  }
}
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") { document.activeElement?.blur(); return; }
  // It would send the form.
  if (event.key === "Enter" && event.target.closest?.("input[type=checkbox]")) { event.preventDefault(); return; }
  const typing = event.target.closest?.("input:not([type=checkbox]):not([type=radio]), textarea, select");
  if (body.dataset.keys !== "true" || typing || event.ctrlKey || event.metaKey || event.altKey) return;
  if (key(event)) event.preventDefault();
});
