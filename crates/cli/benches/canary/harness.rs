//! The real binary with canaries in its vault, and the search for them in everything that it leaves.

use crate::common::random::Random;
use crate::common::rpc_client::{RpcClient, state};
use crate::common::server_process::free_port;
use crate::common::test_env::TestEnv;
use crate::plan::{Plan, Use};
use crate::process_scan::ProcessScan;
use crate::script::{ECHO_YOUR_KEY, ScriptedModel, Task, key};
use crate::servers::Servers;
use lango_testkit::canary::CanaryScanner;
use serde_json::json;
use std::fs::{self, File};
use std::io::Write;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const PROGRAM: &str = include_str!("program.py");
const TURN_TIMEOUT: Duration = Duration::from_secs(60);
const START_TIMEOUT: Duration = Duration::from_secs(30);

pub(crate) struct Harness {
    test_env: TestEnv,
    servers: Servers,
    model: ScriptedModel,
    scanner: Arc<CanaryScanner>,
    messages: AtomicUsize,
}

impl Harness {
    /// Starts the servers, writes the configuration, and stores and binds every canary.
    pub(crate) fn start(plan: &Plan) -> Self {
        let uses = plan.uses.iter();
        let repositories = uses.filter(|secret_use| matches!(secret_use, Use::Git(_)));
        let servers = Servers::start(repositories.count());
        let model = ScriptedModel::start();
        let test_env = TestEnv::with_configuration(&configuration(plan, &servers, &model));
        let harness = Self {
            scanner: Arc::new(CanaryScanner::new(&plan.values)),
            messages: AtomicUsize::new(0),
            test_env,
            servers,
            model,
        };
        harness.store(plan);
        harness.prepare_workspace();
        harness
    }

    /// Returns the path of the MCP program. It is outside of the workspace, where agents cannot change it.
    fn program(home: &Path) -> PathBuf {
        home.with_file_name("installed").join("program.py")
    }

    fn store(&self, plan: &Plan) {
        let home = self.test_env.home();
        let program = Self::program(&home);
        fs::create_dir_all(program.parent().unwrap()).unwrap();
        fs::write(&program, PROGRAM).unwrap();
        let configuration = fs::read_to_string(home.join("lango.toml")).unwrap();
        let folder = program.parent().unwrap().display().to_string();
        let configuration = configuration.replace("INSTALLED", &folder);
        let key_file = home.with_file_name("vault.key").display().to_string();
        let configuration = configuration.replace("KEY_FILE", &key_file);
        fs::write(home.join("lango.toml"), configuration).unwrap();
        self.run(&["secrets", "init", "--key-file", &key_file]);
        for (index, value) in plan.values.iter().enumerate() {
            let name = Plan::name(index);
            // Commands run as the server's user, everything else as the local user.
            let owner: &[&str] = match plan.uses[index] {
                Use::Git(_) | Use::Curl(_) => &["secrets", "--server"],
                _ => &["secrets"],
            };
            let mut command = self.lango(&[owner, &["set", &name]].concat());
            let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
            child
                .stdin
                .take()
                .unwrap()
                .write_all(value.as_bytes())
                .unwrap();
            let output = child.wait_with_output().unwrap();
            assert!(output.status.success(), "{output:?}");
            let host = format!("https://127.0.0.1:{}", self.servers.https);
            let tool = match plan.uses[index] {
                Use::Git(_) | Use::Curl(_) => "exec",
                Use::Program(_) => "mcp:program",
                Use::McpHttp(_) | Use::RemoteAgent(_) | Use::Model(_) => continue,
            };
            let bind = [
                "bind", &name, "--tool", tool, "--host", &host, "--env", &name,
            ];
            self.run(&[owner, &bind].concat());
        }
    }

    fn prepare_workspace(&self) {
        let workspace = self.test_env.workspace();
        let git = |arguments: &[&str]| {
            let mut command = Command::new("git");
            command.current_dir(&workspace).args(arguments);
            let status = command.status().unwrap();
            assert!(status.success(), "{arguments:?}");
        };
        git(&["init", "-q", "-b", "main"]);
        git(&["add", "notes.md"]);
        let author = ["-c", "user.name=a", "-c", "user.email=a@example.com"];
        git(&[&author[..], &["commit", "-q", "-m", "First"]].concat());
    }

    fn lango(&self, arguments: &[&str]) -> Command {
        let mut command = self.test_env.lango();
        command
            .args(arguments)
            .env("SSL_CERT_FILE", self.servers.authority())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let output = self.lango(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        output
    }

    /// Uses every canary, and scans the sandboxed processes meanwhile.
    pub(crate) fn use_all(&self, plan: &Plan) -> Vec<String> {
        let port = free_port(&mut Random::new(u64::from(std::process::id())));
        let mut server = self.serve(port);
        let rpc_client = RpcClient::new(&self.test_env, &self.test_env.home(), port);
        let process_scan = ProcessScan::start(server.id(), Arc::clone(&self.scanner));
        let mut problems = Vec::new();
        for (index, secret_use) in plan.uses.iter().enumerate() {
            if let Some(task) = self.task(index, *secret_use) {
                problems.extend(self.ask(&rpc_client, &task).err());
            }
        }
        problems.extend(self.ask(&rpc_client, &dump_core()).err());
        let scanned = process_scan.stop();
        println!(
            "scanned {} sandboxed processes, {} MiB",
            scanned.processes.len(),
            scanned.bytes >> 20
        );
        if scanned.processes.is_empty() {
            problems.push("no sandboxed process was scanned".to_owned());
        }
        problems.extend(scanned.problems);
        crash(&mut server);
        for (index, secret_use) in plan.uses.iter().enumerate() {
            if let Use::Model(number) = secret_use {
                let problem = self.echo_key(number);
                problems.extend(problem.map(|problem| format!("{index}: {problem}")));
            }
        }
        for (index, secret_use) in plan.uses.iter().enumerate() {
            if let Use::Git(number) = secret_use
                && self.servers.commits(*number) == 0
            {
                problems.push(format!(
                    "{index}: nothing was pushed to repository {number}"
                ));
            }
        }
        problems
    }

    fn serve(&self, port: u16) -> Child {
        let home = self.test_env.home();
        let log = File::create(home.with_file_name("serve.log")).unwrap();
        let mut command = self.lango(&["serve", "--port", &port.to_string()]);
        command.stdout(log.try_clone().unwrap()).stderr(log);
        let server = command.spawn().unwrap();
        let started = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(
                started.elapsed() < START_TIMEOUT,
                "the server does not start"
            );
            thread::sleep(Duration::from_millis(20));
        }
        server
    }

    /// Returns the task of the turn that uses a canary, or `None` for the key of a provider.
    fn task(&self, index: usize, secret_use: Use) -> Option<Task> {
        let name = Plan::name(index);
        let address = format!("https://127.0.0.1:{}", self.servers.https);
        let exec = |command: String| Task {
            agent: "operator".to_owned(),
            call: Some(("exec".to_owned(), json!({ "command": command }))),
        };
        Some(match secret_use {
            Use::Git(number) => exec(format!(
                "git push https://x:${name}@127.0.0.1:{}/git/{number}.git main && sleep 0.2",
                self.servers.https
            )),
            Use::Curl(encoding) => exec(format!(
                "curl -sS --compressed -i -H \"Authorization: Bearer ${name}\" {address}/echo/{encoding} | tee echo-{index}; env | grep {name}; sleep 0.1"
            )),
            Use::Program(encoding) => Task {
                agent: "operator".to_owned(),
                call: Some((
                    "program_use".to_owned(),
                    json!({ "variable": name, "encoding": encoding }),
                )),
            },
            Use::McpHttp(number) => Task {
                agent: "operator".to_owned(),
                call: Some((format!("http{number}_echo"), json!({}))),
            },
            Use::RemoteAgent(number) => Task {
                agent: format!("echo{number}"),
                call: None,
            },
            Use::Model(_) => return None,
        })
    }

    fn ask(&self, rpc_client: &RpcClient, task: &Task) -> Result<(), String> {
        let number = self.messages.fetch_add(1, Ordering::Relaxed);
        let message = json!({
            "message": {
                "messageId": format!("m-{number}"),
                "role": "ROLE_USER",
                "parts": [{ "text": task.question() }],
            },
        });
        let sent = rpc_client.rpc("SendMessage", message, TURN_TIMEOUT);
        let sent = sent.map_err(|error| format!("{task:?}: {error:?}"))?;
        self.check("an answer", sent.to_string().as_bytes())?;
        match state(&sent["task"]) {
            "COMPLETED" => Ok(()),
            _ => Err(format!("{task:?}: {sent}")),
        }
    }

    fn echo_key(&self, number: &usize) -> Option<String> {
        let model = format!("agent.model=keyed{number}/any");
        let output = self
            .lango(&["-c", &model, "run", ECHO_YOUR_KEY])
            .output()
            .unwrap();
        if !output.status.success() {
            return Some(format!("{output:?}"));
        }
        let printed = [output.stdout, output.stderr].concat();
        self.check("the output of `lango run`", &printed).err()
    }

    fn check(&self, location: &str, bytes: &[u8]) -> Result<(), String> {
        match self.scanner.scan(bytes).as_slice() {
            [] => Ok(()),
            [first, ..] => {
                let from = first.offset.saturating_sub(80);
                let to = usize::min(first.offset + 120, bytes.len());
                let near = String::from_utf8_lossy(&bytes[from..to]);
                Err(format!("{first:?} in {location}: …{near}…"))
            }
        }
    }

    /// Returns a problem for each canary that never reached a server.
    pub(crate) fn unused(&self, plan: &Plan) -> Vec<String> {
        let received = self.servers.received_tokens();
        let requests = self.model.requests();
        let is_used = |index: usize| match plan.uses[index] {
            Use::Model(_) => {
                let own = Some(plan.values[index].as_str());
                requests.iter().any(|request| key(request) == own)
            }
            _ => received.contains(&sha256(&plan.values[index])),
        };
        let unused = (0..plan.uses.len()).filter(|index| !is_used(*index));
        unused
            .map(|index| format!("canary {index} ({:?}) was never used", plan.uses[index]))
            .collect()
    }

    /// Scans all files, exports, command output and model requests.
    pub(crate) fn scan_everything(&self, plan: &Plan) -> Vec<String> {
        let mut problems = Vec::new();
        for arguments in [
            &["sessions", "export", "--all"][..],
            &["secrets", "list", "--json"],
            &["secrets", "log", "--json"],
            &["doctor", "--json"],
            &["config", "show", "--origin"],
            &["store", "backup", "../backup.db"],
        ] {
            let output = self.lango(arguments).output().unwrap();
            let printed = [output.stdout, output.stderr].concat();
            problems.extend(
                self.check(&format!("`lango {}`", arguments.join(" ")), &printed)
                    .err(),
            );
        }
        let root = self.test_env.home().with_file_name("");
        let mut files = 0;
        let mut folders = vec![root];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap().flatten() {
                let (path, kind) = (entry.path(), entry.file_type().unwrap());
                if kind.is_dir() {
                    folders.push(path);
                } else if kind.is_file() {
                    files += 1;
                    let name = path.file_name().unwrap().to_string_lossy().into_owned();
                    if name == "core" || name.starts_with("core.") {
                        problems.push(format!("a core dump: {}", path.display()));
                    }
                    let bytes = fs::read(&path).unwrap();
                    problems.extend(self.check(&path.display().to_string(), &bytes).err());
                }
            }
        }
        let requests = self.model.requests();
        for request in &requests {
            let headers = request.headers.iter();
            let headers = headers.filter(|(name, _)| name != "authorization");
            let headers: Vec<_> = headers.collect();
            let sent = format!("{} {headers:?}\n{}", request.path, request.body);
            problems.extend(self.check("a model request", sent.as_bytes()).err());
        }
        println!(
            "searched for {} values in {files} files, {} model requests, exports and logs",
            plan.values.len(),
            requests.len()
        );
        problems
    }
}

fn configuration(plan: &Plan, servers: &Servers, model: &ScriptedModel) -> String {
    let (https, http) = (servers.https, servers.http);
    let mut text = format!(
        "a2a.enabled = true\nvault.keyFile = 'KEY_FILE'\n\
         [agent]\nmodel = 'mock/any'\n\
         [providers.mock]\nkind = 'openai'\nbaseUrl = '{}'\n\
         [[approval.rules]]\naction = 'allow'\n\
         [egress]\nallow = ['127.0.0.1:{https}', '127.0.0.1:{http}']\n\
         [tools.exec]\nnetwork = ['127.0.0.1:{https}']\n\
         [mcp.servers.program]\ncommand = ['python3', 'INSTALLED/program.py', 'https://127.0.0.1:{https}']\n\
         read = ['INSTALLED']\nagent = 'operator'\nnetwork = ['127.0.0.1:{https}']\n",
        model.url()
    );
    let programs = plan.uses.iter().enumerate();
    let variables: Vec<String> = programs
        .filter(|(_, secret_use)| matches!(secret_use, Use::Program(_)))
        .map(|(index, _)| format!("{0} = 'secret:{0}'", Plan::name(index)))
        .collect();
    text.push_str(&format!("env = {{ {} }}\n", variables.join(", ")));
    for (index, secret_use) in plan.uses.iter().enumerate() {
        let name = Plan::name(index);
        text.push_str(&match secret_use {
            Use::McpHttp(number) => format!(
                "[mcp.servers.http{number}]\nurl = 'http://127.0.0.1:{http}/mcp/{number}'\n\
                 tokenEnv = 'secret:{name}'\nagent = 'operator'\n"
            ),
            Use::RemoteAgent(number) => format!(
                "[[a2a.remoteAgents]]\nname = 'echo{number}'\n\
                 agentCardUrl = 'http://127.0.0.1:{http}/a2a/{number}'\ntokenEnv = 'secret:{name}'\n"
            ),
            Use::Model(number) => format!(
                "[providers.keyed{number}]\nkind = 'openai'\nbaseUrl = '{}'\napiKeyEnv = 'secret:{name}'\n",
                model.url()
            ),
            Use::Git(_) | Use::Curl(_) | Use::Program(_) => String::new(),
        });
    }
    text
}

/// Returns a task whose command crashes and would leave a core dump with its environment.
fn dump_core() -> Task {
    let command = "ulimit -c unlimited; sh -c 'kill -SEGV $$'; ls -la; true";
    Task {
        agent: "operator".to_owned(),
        call: Some(("exec".to_owned(), json!({ "command": command }))),
    }
}

/// Crashes lango with SIGABRT. It must not leave a core dump.
fn crash(server: &mut Child) {
    let id = rustix::process::Pid::from_child(server);
    let _ = rustix::process::kill_process(id, rustix::process::Signal::ABORT);
    let _ = server.wait();
}

fn sha256(text: &str) -> String {
    use sha2::{Digest, Sha256};
    let digest = Sha256::digest(text);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
