// Sends the first requests while the other modules still load; api.js hands their answers out once.

const [, kind, session] = location.pathname.split("/");
const paths = ["/api/me", "/api/sessions?limit=50"];
if (kind === "s" && session) paths.unshift(`/api/sessions/${session}/events?limit=48`);

/** Answers by path. A failure is not one of these: the same request is sent again. @type {Map<string, Promise<Response>>} */
export const early = new Map(paths.map((path) => [path, fetch(path)]));
for (const answer of early.values()) answer.catch(() => {});
