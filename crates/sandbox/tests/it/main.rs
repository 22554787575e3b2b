//! The sandbox from outside.

use lango_sandbox::*;
use tokio::io::AsyncReadExt;

#[tokio::test]
async fn smoke() {
    let helper = Helper {
        program: env!("CARGO_BIN_EXE_sandbox-stand-in").into(),
        arguments: vec!["__sandbox".into()],
    };
    let launcher = Launcher::new(helper);
    let folder = tempfile::tempdir().unwrap();
    let policy = Policy::of(folder.path().to_path_buf());
    let command = Command::new(
        [
            "sh",
            "-c",
            "id; ls -la / /dev /etc; env; cat /proc/mounts; cat /proc/self/status | egrep 'Cap|Sec|NoNew'; ps aux; ls -l /proc/self/fd; exit 3",
        ],
        folder.path().to_path_buf(),
    );
    let mut child = launcher.spawn(&policy, command).unwrap();
    let mut out = String::new();
    child
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut out)
        .await
        .unwrap();
    let mut err = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut err)
        .await
        .unwrap();
    println!("{out}\n--\n{err}\n{:?}", child.wait().await);
    let started = std::time::Instant::now();
    println!("{:#?} {:?}", launcher.self_test().await, started.elapsed());
}
