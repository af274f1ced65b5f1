// What is shown. It is kept in the address after #, so that a link shows the same.

const AXES = ["run", "workload", "phase", "device", "precision"];
const value = (group, axis) => (axis === "run" ? data.runs[group.run].name : group[axis]);

const first = data.groups[data.opens];
const DEFAULTS = { sort: "", order: "up", filter: "", status: "", columns: "", chart: "", row: "" };
for (const axis of AXES) DEFAULTS[axis] = first ? value(first, axis) : "";
const state = { ...DEFAULTS };

const matches = (group) => AXES.every((axis) => state[axis] === "" || state[axis] === value(group, axis));

// If a choice on one axis matches no group, the other axes change to those of a group that matches it.
function choose(axis, wanted) {
  state[axis] = wanted;
  if (data.groups.some(matches)) return;
  const group = data.groups.find((one) => value(one, axis) === wanted);
  if (group) for (const other of AXES) if (state[other] !== "") state[other] = value(group, other);
}

function chooseGroup(group) {
  for (const axis of AXES) state[axis] = value(group, axis);
}

function readAddress() {
  const address = new URLSearchParams(location.hash.slice(1));
  for (const name of Object.keys(DEFAULTS)) state[name] = address.has(name) ? address.get(name) : DEFAULTS[name];
  if (!data.groups.some(matches)) for (const axis of AXES) state[axis] = DEFAULTS[axis];
}

function writeAddress() {
  const address = new URLSearchParams();
  for (const [name, usual] of Object.entries(DEFAULTS)) {
    if (state[name] !== usual || AXES.includes(name)) address.set(name, state[name]);
  }
  const hash = `#${address}`;
  if (hash !== location.hash) history.replaceState(null, "", hash);
}
