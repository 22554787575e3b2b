//! Tests of which commands of package runners are accepted.

use super::packages::check;

fn checked(command: &str) -> Result<Vec<String>, String> {
    let argv: Vec<String> = command.split(' ').map(str::to_owned).collect();
    check(&argv, &[])
}

#[test]
fn a_package_with_an_exact_version_is_accepted() {
    for command in [
        "npx pkg@1.2.3",
        "npx -y @scope/pkg@1.2.3 --flag .",
        "/usr/bin/npx --yes pkg@1.2.3-beta.1+x",
        "npx -p pkg@1.2.3 cmd",
        "npx --package=pkg@1.2.3 -p @a/b@0.0.1 -- cmd arg",
        "npx --registry https://r.example pkg@1.2.3",
        "npm exec --yes -- pkg@1.2.3",
        "bunx pkg@1.2.3",
        "bun x pkg@1.2.3",
        "pnpm dlx pkg@1.2.3",
        "pnpm --silent dlx --package=pkg@1.2.3 cmd",
        "yarn dlx -q pkg@1.2.3",
        "uvx pkg@1.2.3",
        "uvx pkg==2025.9.25 --flag",
        "uvx --from pkg[cli]==1.2 cmd",
        "uvx --python 3.12 --with other==1.0 pkg==1.2.3",
        "uv tool run --from=pkg==1.2.3 cmd",
        "pipx run pkg==1.2.3",
        "pipx run --spec pkg==1.2.3 cmd",
        "env -i A=1 npx pkg@1.2.3",
        "npx /opt/server.tgz",
        "node server.js latest",
        "uv pip list",
        "npm start",
        "npm run exec",
        "npm --prefix /opt exec pkg@1.2.3",
        "npm init -y",
        "npm create app@1.2.3",
        "env -u X npx pkg@1.2.3",
        "nice -n 5 uvx pkg==1.2.3",
        "pnpm --dir /opt dlx pkg@1.2.3",
        "uv --directory /opt tool run pkg==1.2.3",
        "uv --directory /opt run server.py init",
        "uv run --with a==1.0 --with b==2.0 python -m server",
        "uvx -wother==1.0 pkg==1.2.3",
        "uvx -qn -p3.12 pkg==1.2.3",
        "python3 -m pipx run pkg==1.2.3",
        "deno run -A npm:@scope/pkg@1.2.3/bin --port 80",
        "deno run --allow-net=example.com /opt/server.ts",
        "bun /opt/server.ts create",
        "npx gateway@1.2.3 --stdio npx -y pkg@1.2.3",
        "/opt/npx-docs/server create",
    ] {
        assert!(checked(command).is_ok(), "{command}");
    }
}

#[test]
fn everything_but_an_exact_version_is_refused() {
    for command in [
        "npx pkg",
        "npx -y @scope/pkg",
        "npx pkg@latest",
        "npx pkg@^1.2.3",
        "npx pkg@1.2",
        "npx pkg@1.x",
        "npx pkg@1.2.3-",
        "npx pkg@npm:other@1.2.3",
        "npx github:user/repo",
        "npx user/repo",
        "npx https://example.com/pkg-1.2.3.tgz",
        "npx git+ssh://example.com/x@1.2.3",
        "npx -p pkg@1.2.3 -p other cmd",
        "npx",
        "npm exec pkg",
        "bunx pkg",
        "pnpm dlx pkg",
        "yarn dlx pkg@next",
        "uvx pkg",
        "uvx pkg@latest",
        "uvx pkg>=1.2.3",
        "uvx pkg==1.*",
        "uvx pkg==1.2,>1",
        "uvx --from pkg cmd",
        "uvx --from git+https://example.com/x@1.2.3 cmd",
        "uvx --with other pkg==1.2.3",
        "uvx --with-requirements r.txt pkg==1.2.3",
        "uv tool run pkg",
        "pipx run pkg",
        "pipx run https://example.com/x.py",
        "env A=1 npx pkg",
        "npm --prefix /opt exec pkg",
        "npm --package=evil exec cmd",
        "npm exe pkg",
        "npm x pkg",
        "npm init pkg",
        "npm create pkg@latest",
        "npx --pack evil pkg@1.2.3",
        "npx --pack=evil pkg@1.2.3",
        "npx -pevil pkg@1.2.3",
        "npx -y pkg@1.2.3 npx evil",
        "npx npm@11.0.0 exec evil",
        "env -u X npx pkg",
        "nice npx pkg",
        "nice -n 5 timeout 9 /usr/bin/npx pkg",
        "node /usr/share/nodejs/npm/bin/npx-cli.js pkg",
        "pnpm --dir /opt dlx pkg",
        "pnpm dlx -c evil pkg@1.2.3",
        "pnpm create pkg",
        "yarn workspace a dlx pkg",
        "yarn create pkg",
        "bun create pkg",
        "bunx --strange evil pkg@1.2.3",
        "uv --directory /opt tool run pkg",
        "uv --strange x tool run pkg",
        "uv --strange x run --with pkg cmd",
        "uv run --with pkg cmd",
        "uv run --with-requirements r.txt cmd",
        "uv run --strange x --with pkg cmd",
        "uv run https://example.com/x.py",
        "uvx -wevil pkg==1.2.3",
        "uvx -w=evil pkg==1.2.3",
        "uvx --strange evil pkg==1.2.3",
        "python3 -m pipx run pkg",
        "python3 -m uv tool run pkg",
        "pipx run --sp evil pkg==1.2.3",
        "deno run npm:pkg",
        "deno run -A jsr:@scope/pkg@^1.0.0",
        "deno run --preload=npm:pkg /opt/server.ts",
        "deno run https://example.com/x.ts",
        "deno x pkg",
        "deno npm:pkg",
        "deno https://example.com/x.ts",
    ] {
        assert!(checked(command).is_err(), "{command}");
    }
}

#[test]
fn packages_on_this_machine_are_returned_to_be_checked_as_files() {
    let local = |command| checked(command).unwrap();
    assert_eq!(local("npx /opt/server"), ["/opt/server"]);
    assert_eq!(local("uvx --from ./srv --with a==1.0 cmd"), ["./srv"]);
    assert!(local("npx pkg@1.2.3 /opt/server").is_empty());
}

#[test]
fn the_error_says_what_to_write() {
    let error = checked("npx -y @scope/pkg@latest").unwrap_err();
    assert!(
        error.contains("`@scope/pkg@latest` has no exact version"),
        "{error}"
    );
    assert!(error.contains("`@scope/pkg@1.2.3` in `command`"), "{error}");
    assert!(error.contains("npm view @scope/pkg version"), "{error}");
    let error = checked("uvx mcp-server-time").unwrap_err();
    assert!(error.contains("`mcp-server-time==1.2.3`"), "{error}");
    assert!(
        error.contains("pip index versions mcp-server-time"),
        "{error}"
    );
}

#[test]
fn a_package_in_a_shell_command_needs_an_exact_version_too() {
    let words = |words: &[&str]| -> Vec<String> {
        let words = words.iter();
        words.map(|word| (*word).to_owned()).collect()
    };
    for argv in [
        &["env", "-S", "npx pkg"] as &[&str],
        &["sh", "-c", "cd /opt && exec npx -y pkg"],
        &["sh", "-c", "A=$(uvx pkg)"],
        &["gateway", "--stdio=npx -y pkg"],
        &["gateway", r#"{"command":"npx","args":["pkg"]}"#],
        &["npx", "-p", "pkg@1.2.3", "-c", "pkg && npx other"],
    ] {
        assert!(check(&words(argv), &[]).is_err(), "{argv:?}");
    }
    for argv in [
        &["env", "-S", "npx pkg@1.2.3"] as &[&str],
        &["sh", "-c", "exec npx -y 'pkg@1.2.3'"],
    ] {
        assert_eq!(check(&words(argv), &[]), Ok(Vec::new()), "{argv:?}");
    }
}

#[test]
fn an_argument_declared_data_is_not_a_runner_but_packages_cannot_be_declared_data() {
    let argv = ["server", "--manager", "npx", "npx is nice"].map(str::to_owned);
    let data = ["npx", "npx is nice"].map(str::to_owned);
    let error = check(&argv, &[]).unwrap_err();
    assert!(error.ends_with("list it in `data`"), "{error}");
    assert_eq!(check(&argv, &data), Ok(Vec::new()));
    let argv = ["npx", "pkg"].map(str::to_owned);
    let data = ["npx", "pkg"].map(str::to_owned);
    assert!(check(&argv, &data).is_err());
    let argv = ["sh", "-c", "npx pkg"].map(str::to_owned);
    assert!(check(&argv, &data).is_err());
}

#[test]
fn an_unsupported_command_is_refused_with_an_example() {
    for (command, expected) in [
        (
            "npx --pack evil pkg@1.2.3",
            "does not know the option `--pack` of `npx`",
        ),
        (
            "npx --pack evil pkg@1.2.3",
            "remove it and write `npx NAME@1.2.3`",
        ),
        (
            "uv --strange x tool run pkg",
            "write `uv tool run NAME==1.2.3`",
        ),
        (
            "yarn workspace a dlx pkg",
            "has the word `workspace` before `dlx`",
        ),
        ("uv run --odd x cmd", "write `uv run --with NAME==1.2.3`"),
    ] {
        let error = checked(command).unwrap_err();
        assert!(error.contains(expected), "{command}: {error}");
    }
}
