/* failures.js: failures out of what was thrown: classes become types, own properties fields. */
/* The server bounds what an error may hold, and these bounds are below its own. What goes beyond them is cut or left out,
 * so that an error with a large object in it gets its verdict. */
const MOST_ERRORS = 16; // the error and its causes
const MOST_LINEAGE = 32;
const MOST_TEXT = 16 * 1024; // bytes of a message or stack
const MOST_NAME = 256;
const FIELDS = { bytes: 16 * 1024, values: 500 }; // of an error, all together
const MOST_FIELD_TEXT = 4 * 1024;
const MOST_ITEMS = 64; // of a list, and entries of a map
const MOST_LEVELS = 4;

const RESERVED = new Set(["type", "lineage", "message", "stack", "cause", "name"]);

const isObject = (value) => typeof value === "object" && value !== null;
const isCause = (value) => value !== undefined && value !== null && typeof value !== "function";

/* Of this realm or another. */
function isPlain(value) {
  const prototype = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

/* What a property is; undefined too where its getter throws: the failure must not get lost by that. */
function get(object, name) {
  try {
    return object[name];
  } catch {
    return undefined;
  }
}

// ---- Values ------------------------------------------------------------------------------------

/* Text that the server takes: no NUL, no half of a surrogate pair, so many bytes at most. */
function text(value, most) {
  const bytes = Buffer.from(value.slice(0, most).replaceAll("\0", "\ufffd")).subarray(0, most);
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes, { stream: true });
}

/* The same out of the room that an error's fields have. */
function fieldText(value, most, room) {
  const read = text(value, Math.min(most, room.bytes));
  room.bytes -= Buffer.byteLength(read);
  return read;
}

/* What of a value a field can hold; undefined: nothing. */
function valueOf(value, room, level) {
  if (--room.values < 0) return undefined;
  if (typeof value === "string") return fieldText(value, MOST_FIELD_TEXT, room);
  if (typeof value === "boolean") return value;
  if (typeof value === "number") return Number.isFinite(value) ? value : undefined;
  if (typeof value === "bigint")
    return Number.isSafeInteger(Number(value)) ? Number(value) : fieldText(`${value}`, MOST_FIELD_TEXT, room);
  if (!isObject(value) || level === MOST_LEVELS) return undefined;
  if (Array.isArray(value))
    return value
      .slice(0, MOST_ITEMS)
      .map((item) => valueOf(item, room, level + 1))
      .filter((item) => item !== undefined);
  if (isPlain(value)) return fieldsOf(value, room, level + 1);
  return textOfObject(value, room);
}

/* Dates, URLs, decimals, ids of databases: what is a text in JSON. */
function textOfObject(value, room) {
  try {
    const json = value.toJSON();
    return typeof json === "string" ? fieldText(json, MOST_FIELD_TEXT, room) : undefined;
  } catch {
    return undefined;
  }
}

function fieldsOf(object, room, level = 0, reserved = new Set()) {
  const fields = [];
  for (const name of Object.keys(object)) {
    if (fields.length === MOST_ITEMS) break;
    const size = Buffer.byteLength(name);
    if (size === 0 || size > Math.min(MOST_NAME, room.bytes) || name.startsWith("_") || reserved.has(name)) continue;
    room.bytes -= size;
    const value = valueOf(get(object, name), room, level);
    if (value !== undefined) fields.push([text(name, MOST_TEXT), value]);
  }
  return Object.fromEntries(fields);
}

// ---- Errors ------------------------------------------------------------------------------------

/* The names of an error, nearest first: its class, what it calls itself, the classes above. */
function* namesOf(error, classes) {
  const own = get(error, "name");
  let prototype = Object.getPrototypeOf(error);
  for (let level = 0; prototype !== null && !isRoot(prototype); level++) {
    const constructor = Object.hasOwn(prototype, "constructor") ? prototype.constructor : undefined;
    yield classes.get(constructor) ?? constructor?.name;
    if (level === 0) yield own;
    prototype = Object.getPrototypeOf(prototype);
  }
}

const isRoot = (prototype) => Object.getPrototypeOf(prototype) === null;

/* Error is left out: it is the root of all types. */
function namesRead(error, classes) {
  const names = new Set();
  for (const name of namesOf(error, classes))
    if (typeof name === "string" && name !== "" && name !== "Error") names.add(text(name, MOST_NAME));
  return [...names].slice(0, MOST_LINEAGE);
}

function errorOf(error, options, seen) {
  if (!isObject(error)) return { type: "Error", message: text(String(error), MOST_TEXT) };
  if (isPlain(error) && typeof error.type === "string") return error;
  const [type = "Error", ...lineage] = namesRead(error, options.types);
  const message = get(error, "message");
  const stack = options.stack ? get(error, "stack") : undefined;
  const cause = get(error, "cause");
  const read = { type, lineage, message: typeof message === "string" ? text(message, MOST_TEXT) : "" };
  if (typeof stack === "string") read.stack = text(stack, MOST_TEXT);
  if (isCause(cause) && !seen.has(cause) && seen.size < MOST_ERRORS)
    read.cause = errorOf(cause, options, new Set(seen).add(cause));
  return { ...fieldsOf(error, { ...FIELDS }, 0, RESERVED), ...read };
}

/** The failure that something thrown is, with the keys of docs/decide.md. An object with `type` that is no Error stays as
 * it is. */
export function failureOf(error, facts = {}, { types = new Map(), stack = false } = {}) {
  return { ...facts, error: errorOf(error, { types, stack }, new Set([error])) };
}
