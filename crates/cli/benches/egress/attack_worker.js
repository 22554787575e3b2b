// Contacts the addresses in its URL: after `#` for a worker, after `?` for a service worker.
const given = location.hash.slice(1) || location.search.slice(1);
const [fetched, imported, socket, requested] = JSON.parse(decodeURIComponent(given));
const attempt = (action) => {
  try {
    Promise.resolve(action()).catch(() => {});
  } catch {}
};
attempt(() => fetch(fetched, { mode: "no-cors" }));
attempt(() => new WebSocket(socket));
attempt(() => {
  const request = new XMLHttpRequest();
  request.open("GET", requested);
  request.send();
});
attempt(() => importScripts(imported));
