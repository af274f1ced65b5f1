// Numbers with units, the same as rnnbench prints in the terminal.

const NONE = "–";
const known = (value) => value !== null && value !== undefined;

// Halfway between two numbers Python rounds to the even one, and toFixed away from zero.
function fixed(value, digits) {
  const scaled = Math.abs(value) * 10 ** digits;
  const below = Math.floor(scaled);
  const between = scaled - below === 0.5 && Number.isInteger(8 * value); // 8: otherwise the half comes from rounding in the scaling
  return (between && below % 2 === 0 ? (Math.sign(value) * below) / 10 ** digits : value).toFixed(digits);
}

function figures(value) {
  const size = Math.abs(value);
  if (size >= 100) return fixed(value, 0).replace(/\B(?=(\d{3})+$)/g, ",");
  return fixed(value, size >= 10 ? 1 : 2);
}

function unit(value) {
  const size = Math.abs(value);
  return size >= 1 ? [1, "s"] : size >= 1e-3 ? [1e-3, "ms"] : [1e-6, "µs"];
}

function seconds(value) {
  if (!known(value)) return NONE;
  if (value === 0) return "0 s";
  const [scale, name] = unit(value);
  return `${figures(value / scale)} ${name}`;
}

function span(low, high, like) {
  if (!known(low) || !known(high) || !known(like)) return "";
  const [scale] = unit(like);
  return `[${figures(low / scale)}, ${figures(high / scale)}]`;
}

function bytes(value) {
  if (!known(value)) return NONE;
  let amount = value;
  for (const name of ["B", "kB", "MB"]) {
    if (amount < 1000) return `${figures(amount)} ${name}`;
    amount /= 1000;
  }
  return `${figures(amount)} GB`;
}

// The mark of a figure whose interval is wider than ±20 %.
const marked = (text, uncertain) => (uncertain ? `${text}±` : text);
const times = (value) => (!known(value) ? NONE : `${fixed(value, value < 100 ? 2 : 0)}×`);
const share = (value) => (!known(value) ? NONE : `${fixed(100 * value, value >= 0.0995 ? 0 : 1)} %`);
const amount = (value) => (!known(value) ? NONE : figures(value));
const whole = (value) => (!known(value) ? NONE : Math.round(value).toLocaleString("en"));
const scientific = (value) => (known(value) ? value.toExponential(1) : "not finite");
