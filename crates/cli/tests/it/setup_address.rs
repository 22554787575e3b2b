//! The address in `lango setup` through the real binary: checked before the key, asked for again, and completed.

use crate::lango::Lango;
use crate::models::Provider;
use crate::setup::{KEY, config, list, with_key};
use crate::terminal::Terminal;
use lango_testkit::model::say;
use lango_testkit::wire_server::{ClosedPort, Fault, ScriptedAnswer};

fn without_scheme(url: &str) -> &str {
    url.strip_prefix("http://").unwrap()
}

#[test]
fn an_address_that_cannot_be_reached_is_asked_for_again_before_the_key() {
    let provider = Provider::new(vec![list(), list(), say("ok").into()]);
    let port = ClosedPort::new();
    let lango = Lango::new();
    let mut terminal = Terminal::start(&lango, 200, &["setup"], &[]);
    terminal.wait_for("number, name or URL (");
    terminal.press(&format!("{}\r", without_scheme(port.url())));
    let mut seen = terminal.wait_for("(Enter quits): ");
    terminal.press("api.example.com/v1\r");
    seen += &terminal.wait_for("(Enter quits): ");
    terminal.press(&format!("{}\r", without_scheme(provider.server.url())));
    seen += &terminal.wait_for("Enter if it needs none): ");
    terminal.press("\r");
    seen += &terminal.wait_for("model, by number or name (");
    terminal.press("\r");
    let (code, last) = terminal.end();
    assert_eq!(code, Some(0), "{seen}{last}");
    let unreachable = format!("`{}`: it cannot be reached", port.url());
    let key = format!("API key of {} (", provider.server.url());
    for part in [
        unreachable.as_str(),
        "is the server running?",
        "the address must start with http:// or https://",
        "next: write https://api.example.com/v1",
        &key,
    ] {
        assert!(seen.contains(part), "no `{part}` in {seen}");
    }
    let before_key = seen.split("API key").next().unwrap();
    assert!(!before_key.contains("custom"), "{seen}");
    let written = format!("baseUrl = \"{}\"", provider.server.url());
    assert!(config(&lango).contains(&written), "{}", config(&lango));
}

#[test]
fn the_name_stays_with_another_address_and_an_empty_one_gives_up() {
    let port = ClosedPort::new();
    let lango = Lango::new();
    let arguments = ["setup", "--provider", "mine", "--base-url", port.url()];
    let mut terminal = Terminal::start(&lango, 200, &arguments, &[]);
    let seen = terminal.wait_for("(Enter quits): ");
    assert!(seen.contains("`mine`: it cannot be reached"), "{seen}");
    terminal.press(&format!("{}/v2\r", port.url()));
    let seen = terminal.wait_for("(Enter quits): ");
    assert!(seen.contains("`mine`: it cannot be reached"), "{seen}");
    assert!(seen.contains("/v2"), "{seen}");
    terminal.press("\r");
    let (code, last) = terminal.end();
    assert_eq!(code, Some(0), "{last}");
    assert!(last.contains("nothing was written"), "{last}");
    assert!(!last.contains("API key"), "{last}");
    assert!(!lango.home().exists());
}

#[test]
fn an_address_without_a_scheme_is_completed_on_this_machine_and_refused_elsewhere() {
    let provider = Provider::new(vec![say("ok"), say("hi")]);
    let lango = Lango::new();
    let url = provider.server.url();
    let setup = |address: &str| {
        let arguments = ["setup", "--provider", "mine", "--base-url", address];
        lango.run(&[&arguments[..], &["--model", "any"]].concat())
    };
    for (address, next) in [
        (
            "api.example.com/v1",
            "next: write https://api.example.com/v1",
        ),
        ("10.1.2.3:8000", "next: write https://10.1.2.3:8000"),
    ] {
        setup(address).refused(2, &["must start with http:// or https://", next]);
    }
    assert!(!lango.home().exists());
    setup(without_scheme(url)).ok();
    let written = format!("baseUrl = \"{url}\"");
    assert!(config(&lango).contains(&written), "{}", config(&lango));
    // The same holds for an address in the configuration.
    let set = |address: &str| {
        let arguments = ["config", "set", "providers.mine.baseUrl", address];
        lango.run(&arguments).ok();
    };
    set(without_scheme(url));
    assert_eq!(lango.run(&["run", "hello"]).ok().stdout, "hi\n");
    set("api.example.com/v1");
    lango.run(&["run", "hello"]).refused(
        3,
        &[
            "providers.mine.baseUrl must start with http:// or https://",
            "next: write https://api.example.com/v1",
        ],
    );
}

#[test]
fn an_error_names_the_provider_as_the_user_did() {
    let refused = || ScriptedAnswer::from(Fault::BadKey);
    let provider = Provider::new(vec![refused(), refused(), refused()]);
    let lango = Lango::new();
    let url = provider.server.url();
    let own = ["--provider", "mine", "--base-url", url];
    with_key(&lango, KEY, &own).refused(3, &["error: `mine`: its key is not accepted"]);
    let ran = with_key(&lango, KEY, &["--base-url", url]);
    let named = format!("error: `{url}`: its key is not accepted");
    let ran = ran.refused(3, &[&named]);
    assert!(!ran.stderr.contains("custom"), "{ran:#?}");
    let ran = with_key(&lango, KEY, &["--base-url", url, "--model", "any"]);
    let named = format!("error: model `any` of {url}: its key is not accepted");
    let ran = ran.refused(3, &[&named]);
    assert!(!ran.stderr.contains("custom"), "{ran:#?}");
}

#[test]
fn the_printed_command_reads_the_key_from_standard_input_again() {
    let refused = ScriptedAnswer::from(Fault::BadKey);
    let provider = Provider::new(vec![list(), refused, say("ok").into()]);
    let lango = Lango::new();
    let url = provider.server.url();
    let own = ["--provider", "mine", "--base-url", url];
    let ran = with_key(&lango, KEY, &own);
    let next = format!(
        "next: lango setup --provider mine --base-url {url} --key-stdin --model mine/small < FILE_WITH_THE_KEY"
    );
    ran.refused(2, &["no model of `mine`", &next]);
    let full = [&own[..], &["--model", "mine/small"]].concat();
    let ran = with_key(&lango, KEY, &full).refused(3, &["(the key: from standard input; "]);
    assert!(!ran.stderr.contains("typed"), "{ran:#?}");
    // The command as it was printed, with the key in place of the file.
    with_key(&lango, KEY, &full).ok();
}

/// Starts a server that lists its models only below `/v1`, and answers everything else with a web page.
fn with_a_page_elsewhere() -> Provider {
    let page = "<!DOCTYPE html><html><head><title>Not here</title></head><body>x</body></html>";
    Provider::answering(move |request| match request.path.as_str() {
        "/v1/models" => list(),
        path if path.starts_with("/v1/") => say("ok").into(),
        "/page/models" => ScriptedAnswer::bytes("text/html", page),
        _ => Fault::status(404, "").body(page).into(),
    })
}

#[test]
fn an_address_that_lists_no_models_is_explained_and_can_be_typed_again() {
    let provider = with_a_page_elsewhere();
    let url = provider.server.url();
    for (path, reason) in [
        ("wrong", "404 a web page titled \"Not here\""),
        ("page", "expected JSON, got a web page titled \"Not here\""),
    ] {
        let lango = Lango::new();
        let address = format!("{url}/{path}");
        let arguments = ["setup", "--provider", "mine", "--base-url", &address];
        let mut terminal = Terminal::start(&lango, 300, &arguments, &[]);
        terminal.wait_for("API key of mine (");
        terminal.press(&format!("{KEY}\r"));
        let seen = terminal.wait_for("or the name of a model (Enter quits): ");
        let listless = format!("`mine` ({address}) does not list its models: ");
        for part in [listless.as_str(), reason, "is the path right?"] {
            assert!(seen.contains(part), "no `{part}` in {seen}");
        }
        assert!(!seen.contains('<'), "{seen}");
        terminal.press(&format!("{url}/v1\r"));
        // The key is for the same server, so it is not asked for again.
        let seen = terminal.wait_for("model, by number or name (");
        assert!(!seen.contains("API key"), "{seen}");
        terminal.press("small\r");
        let (code, last) = terminal.end();
        assert_eq!(code, Some(0), "{last}");
        let written = format!("baseUrl = \"{url}/v1\"");
        assert!(config(&lango).contains(&written), "{}", config(&lango));
    }
}

#[test]
fn a_model_that_is_named_although_the_address_lists_none_fails_without_quoting_the_page() {
    let provider = with_a_page_elsewhere();
    let lango = Lango::new();
    let address = format!("{}/wrong", provider.server.url());
    let arguments = ["setup", "--provider", "mine", "--base-url", &address];
    let ran = lango.run(&arguments);
    ran.refused(
        2,
        &["no model of `mine` is given", "does not list its models: "],
    );
    let ran = lango.run(&[&arguments[..], &["--model", "small"]].concat());
    let ran = ran.refused(3, &["404 a web page titled \"Not here\"", &address]);
    assert!(!ran.stderr.contains('<'), "{ran:#?}");
    assert!(!lango.home().join("lango.toml").exists());
}

#[test]
fn an_unreachable_server_fails_with_its_address_and_nothing_is_written() {
    let port = ClosedPort::new();
    let lango = Lango::new();
    let arguments = [
        "setup",
        "--provider",
        "mine",
        "--base-url",
        port.url(),
        "--yes",
    ];
    let ran = lango.run(&arguments);
    ran.refused(
        3,
        &[port.url(), "is the server running?", "nothing was written"],
    );
    assert!(!lango.home().exists());
}
