"use strict";
// The page: fields for the chosen task, one request a change, and what comes back.

const $ = (id) => document.getElementById(id);
const STEPS = 400;
let form, waiting, latest = 0;

const toText = (field, value) =>
  field.integer ? String(Math.round(value)) : String(Number(value.toPrecision(2)));
const toPlace = (field, value) =>
  Math.round(STEPS * Math.log(value / field.minimum) / Math.log(field.maximum / field.minimum));
const toValue = (field, place) => field.minimum * (field.maximum / field.minimum) ** (place / STEPS);

function number(text) {
  const [above, below] = text.replaceAll(/[\s_]/g, "").split("/");
  return below === undefined ? Number(above) : Number(above) / Number(below);
}

function field(name, text) {
  const known = form.fields[name];
  const box = document.createElement("div");
  box.className = "field";
  const label = document.createElement("label");
  label.textContent = known.label;
  const input = document.createElement("input");
  input.id = label.htmlFor = `field-${name}`;
  input.name = name;
  input.inputMode = "decimal";
  input.maxLength = 24;
  input.value = text ?? known.start;
  const slider = document.createElement("input");
  slider.type = "range";
  slider.max = STEPS;
  slider.setAttribute("aria-label", `${known.label}, slider`);
  const follow = () => {
    const value = number(input.value);
    if (value > 0) slider.value = toPlace(known, value);
    slider.setAttribute("aria-valuetext", input.value);
  };
  follow();
  input.addEventListener("input", () => { follow(); soon(); });
  slider.addEventListener("input", () => {
    input.value = toText(known, toValue(known, slider.value));
    slider.setAttribute("aria-valuetext", input.value);
    soon();
  });
  box.append(label, input, slider);
  if (known.hint) {
    const hint = document.createElement("p");
    hint.className = "hint";
    hint.id = `${input.id}-hint`;
    hint.textContent = known.hint;
    input.setAttribute("aria-describedby", hint.id);
    box.append(hint);
  }
  return box;
}

function showFields() {
  const kept = Object.fromEntries(new FormData($("form")));
  $("fields").replaceChildren(...form.tasks[$("task").value].fields.map((name) => field(name, kept[name])));
}

function soon() {
  clearTimeout(waiting);
  waiting = setTimeout(ask, 150);
}

async function fetched(path, request) {
  const answer = await fetch(`${path}?${new URLSearchParams(request)}`);
  return answer.json();
}

async function ask() {
  const turn = ++latest;
  const numbers = Object.fromEntries(new FormData($("form")));
  const study = { epsilon: numbers.epsilon, ...Object.fromEntries(new FormData($("pays-form"))) };
  const where = new URLSearchParams({ ...numbers, ...study });
  history.replaceState(null, "", `#${where}`);
  const [plan, pays] = await Promise.all([fetched("/api/plan", numbers), fetched("/api/break-even", study)]);
  if (turn !== latest) return;
  const refused = plan.refused ?? pays.refused;
  $("refused").hidden = !refused;
  $("refused").textContent = refused ?? "";
  for (const input of document.querySelectorAll("input[name]"))
    input.setAttribute("aria-invalid", String(Boolean(refused?.startsWith(`${input.name} `))));
  if (!plan.refused) showPlan(plan);
  if (!pays.refused) showPays(pays, study);
}

function showPlan(plan) {
  $("best").textContent = `Best: ${plan.reason}.`;
  $("unit").textContent = plan.unit;
  $("reliable").textContent = plan.reliable;
  $("complete").textContent = plan.complete
    ? `Cells may be missing; if none is, with missing=None: error ${shown(plan.complete.error)} (${plan.complete.name}).` : "";
  if (plan.late) $("reliable").textContent += " Parts of the answer are missing: they take too long here.";
  $("useful").textContent = plan.useful ? `Useful from about ${plan.useful.toLocaleString("en")} rows on.` : "";
  $("wished").hidden = !plan.wish;
  if (plan.wish) $("wished").textContent = wished(plan.wish);
  $("methods").replaceChildren(...plan.methods.map((method) => {
    const row = document.createElement("tr");
    const name = document.createElement("th");
    name.scope = "row";
    name.textContent = method.name;
    row.append(name, cell(shown(method.error), "number"), cell(shown(method.times), "number"));
    const more = cell(method.spends);
    const why = document.createElement("div");
    why.className = "why";
    why.textContent = method.why;
    more.append(why);
    row.append(more);
    return row;
  }));
  $("curves").replaceChildren(...plan.axes.map((name) => {
    const curve = plan.curves[name];
    return chart({ ...curve, axis: curve.title, title: `Predicted error against ${curve.title}` });
  }));
  $("python").textContent = plan.python;
  $("shell").textContent = plan.shell;
}

const shown = (number) => (number === null ? "–" : short(number));

function cell(text, kind) {
  const made = document.createElement("td");
  made.textContent = text;
  if (kind) made.className = kind;
  return made;
}

function wished({ epsilon, n }) {
  const parts = [];
  parts.push(epsilon.refused ? `No ε reaches it: ${epsilon.refused}` : `Your wish needs ε = ${epsilon.value} at these numbers.`);
  if (n) parts.push(n.refused ? `Rows: ${n.refused}` : `At this ε it needs ${n.value.toLocaleString("en")} rows.`);
  return parts.join(" ");
}

function showPays(pays, study) {
  const outcomes = Number(study.outcomes).toLocaleString("en"), rounds = Number(study.rounds).toLocaleString("en");
  const gain = pays.gain > 1 ? `${short(pays.gain)} times less noise` : `${short(1 / pays.gain)} times more noise`;
  $("pays").textContent = `To publish 1 of ${outcomes}, a study pays from ${pays.from.toLocaleString("en")} internal queries on. With ${rounds} it has ${gain} than pure composition.`;
  $("pays-curves").replaceChildren(
    chart({ title: "Noise of one query, in units of its sensitivity", axis: "internal queries", asked: pays.asked, ...pays.noise }),
    chart({ title: "Break-even: queries from which on a study pays", axis: "size of the result", asked: Number(study.outcomes), ...pays.sizes }),
  );
}

async function copy(button) {
  try {
    await navigator.clipboard.writeText($(button.dataset.copies).textContent);
    button.textContent = "Copied";
  } catch {
    getSelection().selectAllChildren($(button.dataset.copies));
    button.textContent = "Selected";
  }
  setTimeout(() => { button.textContent = "Copy"; }, 1500);
}

async function start() {
  form = await fetched("/api/form", {});
  for (const [name, { title }] of Object.entries(form.tasks)) $("task").append(new Option(title, name));
  const before = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
  if (before.task in form.tasks) $("task").value = before.task;
  $("wish").value = before.wish ?? "";
  $("fields").replaceChildren(...form.tasks[$("task").value].fields.map((name) => field(name, before[name])));
  $("pays-form").replaceChildren(...["rounds", "outcomes"].map((name) => {
    const box = field(name, before[name]);
    box.querySelector("label").htmlFor = box.querySelector("input").id = `pays-${name}`;
    const hint = box.querySelector(".hint");
    if (hint) box.querySelector("input").setAttribute("aria-describedby", hint.id = `pays-${name}-hint`);
    return box;
  }));
  $("task").addEventListener("change", () => { showFields(); soon(); });
  $("wish").addEventListener("input", soon);
  for (const each of document.querySelectorAll("form")) each.addEventListener("submit", (event) => event.preventDefault());
  for (const button of document.querySelectorAll("[data-copies]")) button.addEventListener("click", () => copy(button));
  await ask();
  document.documentElement.dataset.ready = "yes";
}

start();
