// Contacts the addresses that it is given: as a worker after `#`, as a service worker after `?`.
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
