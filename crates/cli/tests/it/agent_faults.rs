//! Invalid agent files, through the real binary: the reported errors and the exit codes.

use crate::agent_files::{POET, assert_refused, in_home, with_agent_files};
use crate::lango::Lango;

#[test]
fn t17_an_unavailable_model_is_reported_with_the_file_and_line() {
    let lango = with_agent_files();
    let place = format!(
        "{}:4: the model of `poet`: there is no provider `muse`",
        in_home(&lango, "poet.md").display()
    );
    for arguments in [&["run", "hello"][..], &["config", "check"]] {
        assert_refused(&lango, arguments, &[&place]);
    }
    let doctor = lango.run(&["doctor"]).exits(3).stdout;
    assert!(
        doctor.contains(&format!("✗ model          {place}")),
        "{doctor}"
    );
    lango.home_file(
        "agents/poet.md",
        POET.replace("muse/small", "anthropic/claude-haiku-4-5"),
    );
    let place = place.replace(
        "there is no provider `muse`",
        "`anthropic` has no key: looked in ANTHROPIC_API_KEY (not set)",
    );
    assert_refused(
        &lango,
        &["run", "hello"],
        &[&place, "export ANTHROPIC_API_KEY=…"],
    );
    lango.run(&["agents"]).ok();
    lango.home_file("agents/poet.md", POET.replace("muse/small", "offline"));
    lango.run(&["run", "hello"]).ok();
    lango.home_file("agents/poet.md", POET);
    let mine = [
        "-c",
        "providers.muse.kind=openai",
        "-c",
        "providers.muse.baseUrl=http://127.0.0.1:1",
    ];
    let bounded = [&mine[..], &["-c", "agent.maxCost=1", "config", "check"]].concat();
    let unpriced = "poet.md:4: the model of `poet`: the price of `muse/small` is not known, so agent.maxCost cannot be enforced";
    lango.run(&bounded).refused(3, &[unpriced]);
}

#[test]
fn t16_all_problems_are_reported_together_with_file_line_and_field() {
    let lango = with_agent_files();
    let good = "---\ndescription: Does it\n---\nWords.\n";
    for (file, content, expected) in [
        (
            "a.md",
            "---\ndescription: x\nkeyword: [y]\n---\nWords.",
            ":3: unknown field `keyword`; did you mean `keywords`?",
        ),
        (
            "b.md",
            "---\ndescription: x\nkeywords: y\n---\nWords.",
            ":3: `keywords` must be a list, such as `[invoice, receipt]`, found a text",
        ),
        (
            "c.md",
            "---\nalways_include: true\n---\nWords.",
            ":1: the field `description` is missing; say in a sentence what the agent is for",
        ),
        (
            "d e.md",
            good,
            ":1: `d e` cannot be an agent's name: use up to 64 letters, digits, `-` and `_`; rename the file",
        ),
        (
            "f.md",
            "---\ndescription: x\ndescription: y\n---\nWords.",
            ":3: the field `description` occurs twice, first in line 2; remove one",
        ),
        (
            "g.md",
            "---\ndescription: x\n",
            ":1: its front matter is not closed by a `---` line within 64 KiB",
        ),
        (
            "h.md",
            "---\nname: h\ndescription: a: b\n---\nWords.",
            ":3: its front matter is not YAML: mapping values are not allowed in this context; quote a text that contains a colon",
        ),
        (
            "i.md",
            "---\ndescription: x\n---\n",
            ":3: there are neither `prefixes` nor an instruction below the front matter; write there what the agent should do, or give it tools",
        ),
        (
            "j.md",
            "---\nname: k\ndescription: x\n---\nWords.",
            ":2: `name` is `k`, but the file is `j.md`; make them the same, or leave `name` out",
        ),
        (
            "user.md",
            good,
            ":1: `user` is reserved for the user; choose another name for the agent; rename the file",
        ),
        (
            "lango-orchestrator.md",
            good,
            ":1: `lango-orchestrator` is the name of the orchestrator; rename the file",
        ),
        (
            "Planner.md",
            good,
            ":1: `Planner` and `planner` differ only in case; use the same spelling, or rename the file",
        ),
    ] {
        lango.home_file(&format!("agents/{file}"), content);
        let next = "\n  next: fix the problems above; `lango config check` checks the configuration again\n";
        let whole = format!("error: {}{expected}{next}", in_home(&lango, file).display());
        let ran = lango.run(&["agents"]).exits(3);
        assert_eq!((ran.stdout.as_str(), ran.stderr), ("", whole));
        std::fs::rename(in_home(&lango, file), lango.home().join(file)).unwrap();
    }
    lango.home_file("agents/binary.md", b"---\ndescription: \xff\n---\n");
    lango.home_file("agents/large.md", good.to_owned() + &"x".repeat(64 * 1024));
    std::fs::create_dir(in_home(&lango, "folder.md")).unwrap();
    std::os::unix::fs::symlink("nowhere", in_home(&lango, "link.md")).unwrap();
    lango.home_file(
        "agents/worst.md",
        "---\nmodel: a b\ncolour: red\n---\nWords.",
    );
    let expected = [
        "binary.md:2: it is not UTF-8 text: byte 18 of the file is wrong; save it as UTF-8\n",
        "folder.md: the file cannot be read: it is not a file\n",
        "large.md:1: the file is larger than 64 KiB; ",
        "link.md: the file cannot be read: No such file or directory",
        "worst.md:1: the field `description` is missing; ",
        "worst.md:2: `model` must be a provider and a model, ",
        "worst.md:3: unknown field `colour`; the fields are name, description, ",
    ];
    for arguments in [
        &["run", "hello"][..],
        &["agents"],
        &["config", "check"],
        &["sessions", "list"],
    ] {
        lango.run(arguments).refused(3, &expected);
    }
    let doctor = lango.run(&["doctor"]).exits(3).stdout;
    assert!(
        doctor.starts_with("✗ configuration") && doctor.contains("colour"),
        "{doctor}"
    );
}

#[test]
fn t16_no_control_character_of_a_file_reaches_the_terminal_and_long_lists_are_truncated() {
    let lango = Lango::new();
    lango.home_file(
        "agents/a.md",
        "---\n\"\\e[2J\": x\ndescription: y\n---\nWords.",
    );
    let ran = lango.run(&["agents"]).refused(3, &["␛[2J"]);
    assert!(!ran.stderr.contains('\u{1b}'), "{ran:#?}");
    lango.home_file("agents/a.md", "---\ndescription: \"y \\e[2J\"\n---\nWords.");
    let ran = lango.run(&["agents"]).ok();
    assert!(!ran.stdout.contains('\u{1b}'), "{ran:#?}");
    for number in 0..70 {
        lango.home_file(&format!("agents/b{number}.md"), "---\nx: y\n---\n");
    }
    lango.run(&["agents"]).refused(
        3,
        &[
            "it has 71 agent files; the limit is 64, so remove some",
            "… and ",
        ],
    );
}
