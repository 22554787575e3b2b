// A small PNG with bars, as an image that an agent reads.

import { crc32, deflateSync } from "node:zlib";

const WIDTH = 360;
const HEIGHT = 150;
const BARS = [410, 395, 380, 300, 190];

/** @returns {Buffer} */
export function chart() {
  const rows = Array.from({ length: HEIGHT }, (_, y) => Buffer.from([0, ...Array.from({ length: WIDTH }, (_, x) => pixel(x, y)).flat()]));
  const header = Buffer.alloc(13);
  header.writeUInt32BE(WIDTH, 0);
  header.writeUInt32BE(HEIGHT, 4);
  header.set([8, 2, 0, 0, 0], 8);
  return Buffer.concat([Buffer.from("\x89PNG\r\n\x1a\n", "latin1"), part("IHDR", header), part("IDAT", deflateSync(Buffer.concat(rows))), part("IEND", Buffer.alloc(0))]);
}

/** @param {number} x @param {number} y */
function pixel(x, y) {
  const column = Math.floor((x - 20) / 66);
  const height = ((BARS[column] ?? 0) / 450) * (HEIGHT - 20);
  const isBar = (x - 20) % 66 < 46 && x >= 20 && HEIGHT - 10 - y < height && y < HEIGHT - 10;
  if (isBar) return column === BARS.length - 1 ? [47, 129, 90] : [110, 130, 170];
  return y === HEIGHT - 10 ? [150, 150, 160] : [246, 247, 249];
}

/** @param {string} name @param {Buffer} data */
function part(name, data) {
  const body = Buffer.concat([Buffer.from(name, "latin1"), data]);
  const length = Buffer.alloc(4);
  const sum = Buffer.alloc(4);
  length.writeUInt32BE(data.length);
  sum.writeUInt32BE(crc32(body));
  return Buffer.concat([length, body, sum]);
}
