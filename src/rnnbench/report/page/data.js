// The report's data, from the script element beside this one, and what follows from it alone.

const data = JSON.parse(byId("data").textContent);

const rows = data.rows.map((values) => {
  const row = Object.fromEntries(data.fields.map((name, index) => [name, values[index]]));
  row.place = data.groups[row.group];
  row.tone = `tone-${data.frameworks.indexOf(row.framework)}`;
  const of = row.place;
  row.key = [data.runs[of.run].name, of.workload, of.phase, of.device, of.precision, row.system, row.environment].join("|");
  return row;
});

// One launch: blocks of so many batches took so many nanoseconds.
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
