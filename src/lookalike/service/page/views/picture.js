// Small images in the metadata of a document, as `data:` URLs, which cannot load anything.

import { h, shown } from "../dom.js";

const CARRIED = /^data:image\/(png|jpeg|webp|gif);base64,[A-Za-z0-9+/=]+$/;

export const isPicture = (value) => typeof value === "string" && value.length < 2_000_000 && CARRIED.test(value);

export function picture(metadata, id) {
  const found = Object.values(metadata ?? {}).find(isPicture);
  return found === undefined ? null : h("img", { class: "picture", src: found, alt: `The image of ${shown(id)}`, loading: "lazy" });
}
