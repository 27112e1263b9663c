/* frames.js: where each message ends in the bytes that come, cut anywhere.
 *
 * It decodes nothing. A length is held against the size of a message first, so that five bytes can't ask for a gigabyte. */
import { ProtocolError } from "./errors.js";

const MOST_LEVELS = 32;

/* Of the heads 0xc0 to 0xdf: how many bytes the length has, and how many more follow than it says. */
const LENGTHS = [0, 0, 0, 0, 1, 2, 4, 1, 2, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 4, 2, 4, 2, 4];
const FOLLOW = [0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 4, 8, 1, 2, 4, 8, 1, 2, 4, 8, 2, 3, 5, 9, 17, 0, 0, 0, 0, 0, 0, 0];

/* The value whose head is at a byte: where the next value begins, and how many of those are within it. `end` may lie
 * beyond the bytes; without `items` the head itself does. */
function headAt(bytes, at) {
  const head = bytes[at];
  if (head < 0x80 || head >= 0xe0) return { end: at + 1, items: 0 };
  if (head < 0x90) return { end: at + 1, items: 2 * (head & 15) };
  if (head < 0xa0) return { end: at + 1, items: head & 15 };
  if (head < 0xc0) return { end: at + 1 + (head & 31), items: 0 };
  if (head === 0xc1) throw new ProtocolError("the server sent what isn't a message: the byte 0xc1");
  const size = LENGTHS[head - 0xc0];
  const end = at + 1 + size;
  if (end > bytes.length) return { end };
  const length = size === 0 ? 0 : bytes.readUIntBE(at + 1, size);
  if (head >= 0xdc) return { end, items: head < 0xde ? length : 2 * length };
  return { end: end + length + FOLLOW[head - 0xc0], items: 0 };
}

export class Frames {
  #chunks = [];
  #size = 0; // of the chunks
  #need = 1; // bytes without which nothing new can be found
  #at = 0; // as far as has been looked
  #left = [1]; // values to come, by level

  /** @param {number} most bytes of a message */
  constructor(most) {
    this.most = most;
  }

  /** Takes bytes in, and gives the messages that are whole with them, as bytes. */
  *push(chunk) {
    this.#chunks.push(chunk);
    this.#size += chunk.length;
    if (this.#size < this.#need) return;
    let bytes = this.#chunks.length === 1 ? chunk : Buffer.concat(this.#chunks);
    while (this.#isWhole(bytes)) {
      yield bytes.subarray(0, this.#at);
      bytes = bytes.subarray(this.#at);
      this.#at = 0;
      this.#left = [1];
    }
    this.#chunks = [bytes];
    this.#size = bytes.length;
  }

  #isWhole(bytes) {
    while (this.#left.length > 0) {
      const { end, items } = this.#at < bytes.length ? headAt(bytes, this.#at) : { end: this.#at + 1 };
      if (end + (items ?? 0) > this.most)
        throw new ProtocolError(`the server sent a message of more than ${this.most} bytes`);
      if (end > bytes.length || items === undefined) {
        this.#need = end;
        return false;
      }
      this.#pass(end, items);
    }
    return true;
  }

  #pass(end, items) {
    this.#at = end;
    this.#left[this.#left.length - 1]--;
    if (items > 0) this.#left.push(items);
    else while (this.#left.at(-1) === 0) this.#left.pop();
    if (this.#left.length > MOST_LEVELS + 1)
      throw new ProtocolError(`the server sent a message of more than ${MOST_LEVELS} levels`);
  }
}
