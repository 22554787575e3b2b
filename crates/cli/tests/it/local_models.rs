//! A model server that runs on this machine. It has a fixed port, so each test has a network of its own.

use crate::lango::{BINARY, Lango, RunResult, finish};
use std::process::Command;

/// Starts a server like Ollama, then runs its arguments and exits with their exit code.
const OLLAMA: &str = r#"
import http.server, json, subprocess, sys, threading
class Ollama(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.answer({"object": "list", "data": [{"id": "llama3.2:3b", "object": "model"}]})
    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        message = {"role": "assistant", "content": "from the local model"}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        self.answer({"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]})
    def answer(self, body):
        body = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_):
        pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 11434), Ollama)
threading.Thread(target=server.serve_forever, daemon=True).start()
sys.exit(subprocess.run(sys.argv[1:]).returncode)
"#;

/// Runs lango in a network in which only a server like Ollama listens.
fn beside_ollama(lango: &Lango, setting: Option<&str>, arguments: &[&str]) -> RunResult {
    let mut command = Command::new("bwrap");
    lango.prepare(&mut command);
    command.args(["--dev-bind", "/", "/", "--unshare-net", "python3", "-c"]);
    command.args([OLLAMA, BINARY]).args(arguments);
    match setting {
        Some(value) => command.env("LANGO_AGENT_FIND_LOCAL_MODELS", value),
        None => command.env_remove("LANGO_AGENT_FIND_LOCAL_MODELS"),
    };
    finish(&mut command, b"")
}

#[test]
fn without_a_key_a_model_server_of_this_machine_answers_unless_it_must_not_be_looked_for() {
    let lango = Lango::new();
    let without_streaming = ["-c", "providers.ollama.stream=false"];
    let ask = [&without_streaming[..], &["run", "hello"]].concat();
    let ran = beside_ollama(&lango, None, &ask).ok();
    assert_eq!(ran.stdout, "from the local model\n");
    assert!(ran.stderr.contains("ollama/llama3.2:3b"), "{}", ran.stderr);
    let models = beside_ollama(&lango, None, &["models"]).ok().stdout;
    assert!(models.contains("● ollama/llama3.2:3b"), "{models}");

    let ran = beside_ollama(&lango, Some("false"), &ask).ok();
    assert!(ran.stderr.starts_with("demo mode"), "{}", ran.stderr);
    let models = beside_ollama(&lango, Some("false"), &["models"])
        .ok()
        .stdout;
    assert!(!models.contains("llama3.2"), "{models}");
}
