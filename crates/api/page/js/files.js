// Files that belong to a message or a result.

import { attachmentUrl } from "./api.js";
import { h, icon } from "./dom.js";
import { bytes } from "./format.js";

/** Images as thumbnails, other files as links. @param {import("./api.js").Attachment[]} files @param {string} session */
export function attachments(files, session) {
  return files.length > 0 && h("div.files", files.map((file) => {
    const href = attachmentUrl(session, file);
    const label = `${file.name}, ${bytes(file.size)}`;
    if (!file.media_type.startsWith("image/")) return h("a.file", { href, download: file.name }, icon("attach"), label);
    return h("a.thumb", { href, target: "_blank", rel: "noreferrer", title: label }, h("img", { src: href, alt: file.name, loading: "lazy" }));
  }));
}
