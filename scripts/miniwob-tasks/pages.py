"""Serves the pages of MiniWoB++, with a script added to each that starts an episode with a seed and reports the reward."""

import http.server
import json
import mimetypes
import pathlib
import threading
import urllib.parse

# Longer than the pages' default of ten seconds, because a policy waits for the page to settle after each action.
EPISODE_MS = 120_000

SCRIPT = """<script>
(function () {
  var seed = new URLSearchParams(location.search).get('seed');
  var begin = window.onload;
  window.onload = function () {
    if (begin) begin();
    core.EPISODE_MAX_TIME = %d;
    var end = core.endEpisode;
    core.endEpisode = function (reward, proportional, reason) {
      var running = core.EP_TIMER !== null;
      end(reward, false, reason);
      if (running) navigator.sendBeacon('/reward', JSON.stringify({page: location.pathname, seed: seed, reward: reward}));
    };
    document.getElementById('reward-display') && (document.getElementById('reward-display').style.display = 'none');
    Math.seedrandom(seed);
    core.startEpisodeReal();
    document.getElementById('reward-display') && (document.getElementById('reward-display').style.display = 'none');
  };
})();
</script>
""" % EPISODE_MS


class PageServer:
    """A server on loopback that serves a folder and collects the rewards."""

    def __init__(self, folder):
        root = pathlib.Path(folder).resolve()
        rewards = self.rewards = {}

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def answer(self, status, body=b"", kind="text/plain"):
                self.send_response(status)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_GET(self):
                path = (root / urllib.parse.urlsplit(self.path).path.lstrip("/")).resolve()
                if not path.is_relative_to(root) or not path.is_file():
                    return self.answer(404)
                body = path.read_bytes()
                kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
                if path.suffix == ".html" and path.parent.name == "miniwob":
                    body = body.replace(b"</html>", SCRIPT.encode() + b"</html>") if b"</html>" in body else body + SCRIPT.encode()
                self.answer(200, body, kind)

            def do_POST(self):
                report = json.loads(self.rfile.read(int(self.headers["content-length"])))
                task = pathlib.PurePosixPath(report["page"]).stem
                rewards.setdefault((task, int(report["seed"])), float(report["reward"]))
                self.answer(204)

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def url(self, task, seed):
        return f"http://127.0.0.1:{self.port}/miniwob/{task}.html?seed={seed}"
