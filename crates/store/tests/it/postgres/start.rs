//! Tests of opening a database: migrations, certificates, and errors.

use super::{at, execute, refusal};
use lango_core::StoreError;
use lango_testkit::postgres::{self, Cluster};
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use tokio::task::JoinSet;

#[tokio::test]
async fn ten_replicas_that_start_together_create_one_schema() {
    let address = postgres::fresh_schema();
    let mut replicas = JoinSet::new();
    for _ in 0..10 {
        let store = at(&address);
        replicas.spawn(async move { store.open_now().await });
    }
    while let Some(opened) = replicas.join_next().await {
        opened.unwrap().unwrap();
    }
}

#[tokio::test]
async fn an_unreachable_server_is_named_without_the_password() {
    let address = "postgres://ann:s3cret@127.0.0.1:1/lango?sslmode=disable";
    let error = refusal(address).await;
    let message = error.to_string();
    assert!(matches!(error, StoreError::Unreachable { .. }), "{message}");
    assert!(
        message.contains("postgres://127.0.0.1:1/lango") && !message.contains("s3cret"),
        "{message}"
    );
}

#[tokio::test]
async fn a_missing_database_is_reported_immediately() {
    let address = postgres::fresh_schema();
    let (server, options) = address.split_once('?').unwrap();
    let (server, _) = server.rsplit_once('/').unwrap();
    let address = format!("{server}/no_such_database?{options}");
    let error = refusal(&address).await;
    assert!(matches!(error, StoreError::Unreadable { .. }), "{error}");
}

#[tokio::test]
async fn a_schema_of_a_newer_lango_is_refused() {
    let address = postgres::fresh_schema();
    at(&address).open_now().await.unwrap();
    execute(
        &address,
        "INSERT INTO lango_migrations (version, name) VALUES (99, 'later')",
    )
    .await;
    let error = refusal(&address).await;
    assert!(
        matches!(error, StoreError::TooNew { found: 99, .. }),
        "{error}"
    );
}

#[tokio::test]
async fn tables_of_another_program_are_left_alone() {
    let address = postgres::fresh_schema();
    let schema = address.rsplit("%3D").next().unwrap();
    let foreign = format!("CREATE SCHEMA {schema}; CREATE TABLE {schema}.sessions (id int)");
    execute(&address, &foreign).await;
    let error = refusal(&address).await;
    assert!(matches!(error, StoreError::Foreign { .. }), "{error}");
}

#[tokio::test]
async fn a_server_is_verified_as_sslmode_says() {
    let mut cluster = Cluster::start(&[]);
    let plain = cluster.address();
    let required = format!("{plain}?sslmode=require");
    let error = refusal(&required).await;
    assert!(matches!(error, StoreError::Unreadable { .. }), "{error}");

    // One root signs the server's certificate for the name `localhost`; another root signs nothing.
    let folder = cluster.folder().to_owned();
    make_root(&folder, "root");
    make_root(&folder, "other");
    make_certificate(&folder);
    for file in ["server.pem", "server.key"] {
        cluster.chown_to_server(&folder.join(file));
    }
    let file = |name: &str| folder.join(name).display().to_string();
    cluster.stop_immediately();
    cluster.start_again_with(&[
        "ssl=on",
        &format!("ssl_cert_file={}", file("server.pem")),
        &format!("ssl_key_file={}", file("server.key")),
    ]);

    let named = plain.replace("127.0.0.1", "localhost");
    let (root, other) = (file("root.pem"), file("other.pem"));
    for address in [
        format!("{plain}?sslmode=disable"),
        plain.clone(),
        required,
        format!("{plain}?sslmode=verify-ca&sslrootcert={root}"),
        format!("{named}?sslmode=verify-full&sslrootcert={root}"),
    ] {
        at(&address).open_now().await.unwrap();
    }
    for address in [
        format!("{plain}?sslmode=require&sslrootcert={other}"),
        format!("{plain}?sslmode=verify-ca&sslrootcert={other}"),
        format!("{plain}?sslmode=verify-full&sslrootcert={root}"),
        format!("{named}?sslmode=verify-full&sslrootcert={other}"),
    ] {
        let error = refusal(&address).await;
        assert!(
            matches!(error, StoreError::Unreadable { .. }),
            "{address}: {error}"
        );
    }
}

#[tokio::test]
async fn a_self_signed_certificate_is_accepted_if_it_is_given_as_root() {
    let mut cluster = Cluster::start(&[]);
    let folder = cluster.folder().to_owned();
    // These are self-signed, as created with a single command: each is its own root. The last one expires after a second.
    for (name, days) in [("self", "2"), ("twin", "2"), ("old", "0")] {
        self_signed(&folder, name, days);
    }
    let file = |name: &str| folder.join(name).display().to_string();
    let plain = cluster.address();
    let named = plain.replace("127.0.0.1", "localhost");
    let (own, twin) = (file("self.pem"), file("twin.pem"));
    let serve = |cluster: &mut Cluster, name: &str| {
        for end in ["pem", "key"] {
            cluster.chown_to_server(&folder.join(format!("{name}.{end}")));
        }
        cluster.stop_immediately();
        cluster.start_again_with(&[
            "ssl=on",
            &format!("ssl_cert_file={}", file(&format!("{name}.pem"))),
            &format!("ssl_key_file={}", file(&format!("{name}.key"))),
        ]);
    };
    serve(&mut cluster, "self");
    for address in [
        format!("{plain}?sslmode=verify-ca&sslrootcert={own}"),
        format!("{named}?sslmode=verify-full&sslrootcert={own}"),
    ] {
        at(&address).open_now().await.unwrap();
    }
    for (address, problem) in [
        (
            format!("{plain}?sslmode=verify-full&sslrootcert={own}"),
            "is not for `127.0.0.1`; its alternative names: localhost (",
        ),
        // This certificate has the same names, but another key.
        (
            format!("{plain}?sslmode=verify-ca&sslrootcert={twin}"),
            "set `sslrootcert` to the file of that certificate",
        ),
    ] {
        let message = refusal(&address).await.to_string();
        assert!(message.contains(problem), "{message}");
        assert!(!message.contains("CaUsedAsEndEntity"), "{message}");
    }
    serve(&mut cluster, "old");
    tokio::time::sleep(Duration::from_millis(1100)).await;
    let old = file("old.pem");
    let address = format!("{plain}?sslmode=verify-ca&sslrootcert={old}");
    let message = refusal(&address).await.to_string();
    assert!(message.contains("has expired"), "{message}");
}

fn self_signed(folder: &Path, name: &str, days: &str) {
    let file = |end: &str| format!("{name}.{end}");
    let (key, request, out) = (file("key"), file("csr"), file("pem"));
    let extensions = "basicConstraints=CA:TRUE\nsubjectAltName=DNS:localhost\n";
    std::fs::write(folder.join(file("names")), extensions).unwrap();
    let mut request_arguments = vec![
        "req",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
    ];
    request_arguments.extend(["-nodes", "-subj", "/CN=localhost"]);
    request_arguments.extend(["-keyout", &key, "-out", &request]);
    openssl(folder, &request_arguments);
    let names = file("names");
    let mut sign_arguments = vec!["x509", "-req", "-in", &request, "-signkey", &key];
    sign_arguments.extend(["-days", days, "-extfile", &names, "-out", &out]);
    openssl(folder, &sign_arguments);
}

fn make_root(folder: &Path, name: &str) {
    let subject = format!("/CN=lango {name}");
    openssl(
        folder,
        &[
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
            "-days",
            "2",
            "-subj",
            &subject,
            "-keyout",
            &format!("{name}.key"),
            "-out",
            &format!("{name}.pem"),
        ],
    );
}

fn make_certificate(folder: &Path) {
    std::fs::write(
        folder.join("names"),
        "subjectAltName=DNS:localhost\nbasicConstraints=CA:FALSE\n",
    )
    .unwrap();
    openssl(
        folder,
        &[
            "req",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
            "-subj",
            "/CN=localhost",
            "-keyout",
            "server.key",
            "-out",
            "server.csr",
        ],
    );
    openssl(
        folder,
        &[
            "x509",
            "-req",
            "-in",
            "server.csr",
            "-CA",
            "root.pem",
            "-CAkey",
            "root.key",
            "-CAcreateserial",
            "-days",
            "2",
            "-extfile",
            "names",
            "-out",
            "server.pem",
        ],
    );
}

fn openssl(folder: &Path, arguments: &[&str]) {
    let output = Command::new("openssl")
        .args(arguments)
        .current_dir(folder)
        .output()
        .expect("this test needs the program openssl");
    assert!(output.status.success(), "{output:?}");
}
