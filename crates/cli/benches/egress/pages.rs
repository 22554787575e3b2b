//! The responses of the listeners: redirects in every form that clients follow, and attack pages.

use crate::test_network::PUBLIC;

const ATTACK: &str = include_str!("attack.html");
const WORKER: &str = include_str!("attack_worker.js");
/// The path of the workers' script.
const WORKER_PATH: &str = "/worker.js";
/// The path that an attack page requests if it could read a file of the machine.
pub(crate) const LEAK_PATH: &str = "/leaked";

/// Returns the complete response to a request for a path.
pub(crate) fn response(path: &str) -> String {
    let html = |headers: &str, body: &str| page("text/html", headers, body);
    if path.starts_with(WORKER_PATH) {
        return page("text/javascript", "", WORKER);
    }
    if let Some(hosts) = path.strip_prefix("/attack/") {
        return html("", &attack(&decode(hosts), WORKER_PATH));
    }
    let Some((form, target)) = path
        .strip_prefix("/to/")
        .and_then(|rest| rest.split_once('/'))
    else {
        return html("", "the secret page");
    };
    let target = decode(target);
    match form {
        "meta" => html(
            "",
            &format!("<meta http-equiv=refresh content='0;url={target}'>"),
        ),
        "script" => html("", &format!("<script>location.href='{target}'</script>")),
        "frame" => html(
            "",
            &format!("<iframe src='{target}'></iframe><img src='{target}'>"),
        ),
        "image" => html("", &format!("<img src='{target}'>")),
        "refresh" => html(&format!("Refresh: 0;url={target}\r\n"), "wait"),
        status => format!(
            "HTTP/1.1 {status} Redirect\r\nLocation: {target}\r\nAccess-Control-Allow-Origin: *\r\nContent-Length: 0\r\n\
             Connection: close\r\n\r\n"
        ),
    }
}

fn page(content_type: &str, headers: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\n{headers}Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}

/// Returns a page that attacks the hosts of a comma-separated list. `workers` is the path of the workers' script.
fn attack(hosts: &str, workers: &str) -> String {
    let hosts: Vec<&str> = hosts.split(',').collect();
    ATTACK
        .replace("\"HOSTS\"", &serde_json::to_string(&hosts).unwrap())
        .replace("\"WORKERS\"", &format!("\"{workers}\""))
        .replace("\"REDIRECTOR\"", &format!("\"http://{PUBLIC}\""))
}

/// Returns the names and contents of the files of an attack page in the workspace.
pub(crate) fn attack_files(hosts: &str) -> [(&'static str, String); 2] {
    let script = WORKER_PATH.trim_start_matches('/');
    [
        (ATTACK_FILE, attack(hosts, script)),
        (script, WORKER.to_owned()),
    ]
}

/// The name of the attack page in the workspace.
pub(crate) const ATTACK_FILE: &str = "attack.html";

/// Returns a URL at the public address that redirects to a target, in one of the forms of [`response`].
pub(crate) fn redirecting(form: &str, target: &str) -> String {
    format!("http://{PUBLIC}/to/{form}/{}", encode(target))
}

/// Returns the URL of a page at the public address that attacks the hosts of a comma-separated list.
pub(crate) fn attacking(hosts: &str) -> String {
    format!("http://{PUBLIC}/attack/{}", encode(hosts))
}

fn encode(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}

/// Decodes the hexadecimal form of a target in a path.
fn decode(text: &str) -> String {
    let bytes = (0..text.len() / 2)
        .filter_map(|at| u8::from_str_radix(text.get(2 * at..2 * at + 2)?, 16).ok());
    String::from_utf8_lossy(&bytes.collect::<Vec<_>>()).into_owned()
}
