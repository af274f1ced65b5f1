// The report's data, from its own script element, and what is derived from it.

const data = JSON.parse(byId("data").textContent);

const rows = data.rows.map((values) => {
  const row = Object.fromEntries(data.fields.map((name, index) => [name, values[index]]));
  const group = data.groups[row.group];
  row.place = group;
  row.tone = `tone-${data.frameworks.indexOf(row.framework)}`;
  row.key = [data.runs[group.run].name, group.workload, group.phase, group.device, group.precision, row.system, row.environment].join("|");
  return row;
});

// One launch: the batches (sizes) and nanoseconds of each block, and the seconds per batch (walls).
function samplesOf(launch) {
  const [round, started, outcome, noisy, versions, sizes, nanoseconds] = launch;
  const walls = nanoseconds.map((time, index) => time / 1e9 / (Array.isArray(sizes) ? sizes[index] : sizes));
  return { round, started, outcome, noisy, versions, sizes, nanoseconds, walls };
}

function proofOf(row) {
  if (!known(row.proof)) return null;
  const [verdict, reason, workload, log, figures] = data.proofs[row.proof];
  const named = figures.map(([quantity, error, tolerance]) => ({ quantity: data.quantities[quantity], error, tolerance }));
  return { verdict, reason, workload, log, figures: named };
}

const environmentOf = (row) => data.environments[row.place.run][row.environment] || row.environment;
