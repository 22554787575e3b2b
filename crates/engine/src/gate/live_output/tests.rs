//! Attacks on what is shown of a running call: values that arrive in pieces, slowly, over gaps, or in a flood.

use super::*;
use crate::runner::{TurnUpdate, turn_updates};
use futures_util::future::join;
use futures_util::{Stream, StreamExt};
use lango_secrets::SecretValue;
use tokio::time::{Instant, sleep};

const VALUE: &str = "GH_QZXJ7-KVWQYB9/PLMX0_8TRFJ";
const OTHER: &str = "JKX_4VQZW8YH7BPM";

fn masks(values: &[&str]) -> Masks {
    let masks = Masks::default();
    for value in values {
        masks.add("KEY", &SecretValue::new(*value));
    }
    masks
}

/// Runs a tool that pushes to its sink, and returns the text of all updates.
async fn shown<F>(masks: Masks, tool: impl FnOnce(OutputSink) -> F) -> Vec<String>
where
    F: Future<Output = ()>,
{
    let live = LiveOutput::new(masks);
    let (sender, receiver) = turn_updates();
    let call = CallId::from("c_1");
    let running = async {
        let run = async {
            tool(live.sink()).await;
            live.end();
        };
        join(run, live.publish(&call, &sender)).await;
        drop(sender);
    };
    let ((), updates) = join(running, texts(receiver)).await;
    updates
}

async fn texts(updates: impl Stream<Item = TurnUpdate>) -> Vec<String> {
    let text = |update| match update {
        TurnUpdate::ToolOutput { call, text } => {
            assert_eq!(call, CallId::from("c_1"));
            assert!(!text.is_empty() && text.len() <= 8 * 1024, "{}", text.len());
            text
        }
        other => panic!("{other:?}"),
    };
    updates.map(text).collect().await
}

/// Fails if any four bytes of a value are shown.
fn assert_hidden(updates: &[String], values: &[&str]) {
    let shown = updates.concat();
    for value in values {
        for part in value.as_bytes().windows(4) {
            let part = std::str::from_utf8(part).unwrap();
            assert!(!shown.contains(part), "{part} of {value} in {shown:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_last_line_before_a_pause_is_shown_and_an_incomplete_one_held_back() {
    let updates = shown(masks(&[VALUE]), async |sink: OutputSink| {
        sink.push("9\n10\n11\n");
        sleep(Duration::from_secs(1)).await;
        sink.push("12\nGH_QZ");
        sleep(Duration::from_secs(1)).await;
        sink.push("XJ7-KVWQYB9/PLMX0_8TRFJ\n");
        sleep(Duration::from_secs(1)).await;
        sink.push("end");
    });
    let updates = updates.await;
    assert_hidden(&updates, &[VALUE]);
    assert!(
        updates.concat().starts_with("9\n10\n11\n12\n"),
        "{updates:?}"
    );
    assert!(updates.concat().contains("[secret KEY]\n"), "{updates:?}");
    // Not together with the next output.
    assert!(
        updates.iter().any(|text| text.ends_with("11\n")),
        "{updates:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn output_is_shown_while_the_tool_runs_and_at_most_twenty_times_a_second() {
    let started = Instant::now();
    let updates = shown(masks(&[VALUE]), async |sink: OutputSink| {
        for line in 0..1000 {
            sink.push(&format!("line {line} out\n"));
            sleep(Duration::from_millis(2)).await;
        }
    });
    let updates = updates.await;
    let intervals = started.elapsed().as_millis() / INTERVAL.as_millis();
    assert!(
        (20..=intervals as usize + 2).contains(&updates.len()),
        "{}",
        updates.len()
    );
    assert_eq!(updates[0], "line 0 out\n");
    assert!(updates.concat().ends_with("line 998 out\nline 999 out\n"));
}

#[tokio::test(start_paused = true)]
async fn the_last_output_is_shown_even_if_nothing_follows_it() {
    let live = LiveOutput::new(Masks::default());
    let (sender, mut receiver) = turn_updates();
    let call = CallId::from("c_1");
    let sink = live.sink();
    let tool = async {
        sink.push("first\n");
        sink.push("second");
        let mut text = String::new();
        while text != "first\nsecond third" {
            let Some(TurnUpdate::ToolOutput { text: more, .. }) = receiver.recv().await else {
                panic!("{text:?}");
            };
            if text.is_empty() {
                sink.push(" third");
            }
            text.push_str(&more);
        }
        live.end();
    };
    join(tool, live.publish(&call, &sender)).await;
}

#[tokio::test(start_paused = true)]
async fn a_value_that_is_printed_slowly_is_never_shown_in_part() {
    for pause in [0, 1, 60, 5000] {
        let updates = shown(masks(&[VALUE]), async |sink: OutputSink| {
            sink.push("the key is: ");
            for at in 0..VALUE.len() {
                sink.push(&VALUE[at..=at]);
                sleep(Duration::from_millis(pause)).await;
            }
            sink.push("\nand nothing more \n");
        });
        let updates = updates.await;
        assert_hidden(&updates, &[VALUE]);
        assert!(
            updates
                .concat()
                .starts_with("the key is: [secret KEY]\nand "),
            "{updates:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn the_start_of_a_value_is_not_shown_before_a_pause_nor_at_the_end() {
    for cut in 1..VALUE.len() {
        let updates = shown(masks(&[VALUE]), async |sink: OutputSink| {
            sink.push("key ");
            sink.push(&VALUE[..cut]);
            sleep(Duration::from_secs(60)).await;
        });
        assert_eq!(updates.await.concat(), "key ");
    }
}

#[tokio::test(start_paused = true)]
async fn a_value_is_masked_wherever_the_tool_or_the_time_splits_it() {
    let text = format!("a {VALUE} b\n{VALUE}{VALUE}\u{fffd} é {VALUE}\n end\n");
    for size in 1..40 {
        let updates = shown(masks(&[VALUE]), async |sink: OutputSink| {
            let letters: Vec<char> = text.chars().collect();
            for (number, piece) in letters.chunks(size).enumerate() {
                sink.push(&piece.iter().collect::<String>());
                if number % 2 == 0 {
                    sleep(INTERVAL * 2).await;
                }
            }
        });
        assert_hidden(&updates.await, &[VALUE]);
    }
}

/// The tool masks its own values before it pushes, as commands do, and the gate masks the others.
#[tokio::test(start_paused = true)]
async fn both_the_values_of_the_tool_and_of_the_gate_are_masked_in_either_order() {
    let texts = [
        format!("{VALUE}{OTHER} {OTHER}{VALUE}\n"),
        format!("{VALUE} {OTHER}\n{OTHER}\n{VALUE}\n"),
        format!("{}{OTHER}{}\n{VALUE}\n", &VALUE[..3], &VALUE[25..]),
    ];
    for (own, gate) in [(VALUE, OTHER), (OTHER, VALUE)] {
        for text in &texts {
            for size in [1, 3, 7, 16, 100] {
                let updates = shown(masks(&[gate]), async |sink: OutputSink| {
                    let mut stream = masks(&[own]).text_stream();
                    for piece in text.as_bytes().chunks(size) {
                        sink.push(&stream.push(piece));
                        sleep(INTERVAL * 2).await;
                    }
                    sink.push(&stream.finish());
                });
                assert_hidden(&updates.await, &[VALUE, OTHER]);
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_flood_costs_no_memory_and_hides_values_that_a_gap_cuts() {
    // Pieces of 61 KiB, so that gaps cut the values at ever different places.
    let flood = format!("y {VALUE}\n").repeat(2000);
    let started = Instant::now();
    let updates = shown(masks(&[VALUE]), async |sink: OutputSink| {
        for number in 0..16_000_usize {
            let start = number % 61;
            sink.push(&flood[start..]);
            if number % 40 == 0 {
                sleep(Duration::from_millis(7)).await;
            }
        }
    });
    let updates = updates.await;
    assert_hidden(&updates, &[VALUE]);
    let intervals = started.elapsed().as_millis() / INTERVAL.as_millis();
    assert!(
        (10..=intervals as usize + 2).contains(&updates.len()),
        "{}",
        updates.len()
    );
}

#[tokio::test(start_paused = true)]
async fn a_value_that_a_gap_cuts_is_hidden_even_if_little_else_is_shown() {
    // Masks make this flood so short that all of what is kept of it is shown.
    let value = format!("{VALUE}{}", "QJXZ".repeat(50));
    let flood = format!("{value} ").repeat(1000);
    for cut in 0..value.len() {
        let updates = shown(masks(&[&value]), async |sink: OutputSink| {
            sink.push("start\n");
            sleep(INTERVAL * 2).await;
            sink.push(&flood[..flood.len() - cut]);
            sleep(INTERVAL * 2).await;
            sink.push(&flood[flood.len() - cut..]);
        });
        let updates = updates.await;
        assert_hidden(&updates, &[&value]);
        assert!(updates.len() > 1, "{updates:?}");
    }
}

#[test]
fn a_flood_that_is_never_published_is_dropped() {
    let live = LiveOutput::new(Masks::default());
    let sink = live.sink();
    let (line, block) = ("y\n".repeat(100), "y\n".repeat(1 << 20));
    for number in 0..20_000 {
        sink.push(if number % 100 == 0 { &block } else { &line });
    }
    let unpublished = live.unpublished();
    assert!(unpublished.has_gap && unpublished.text.capacity() < 256 * 1024);
}

#[tokio::test(start_paused = true)]
async fn a_value_that_becomes_known_while_the_tool_runs_is_masked() {
    let masks = masks(&[OTHER]);
    let later = masks.clone();
    let updates = shown(masks, async |sink: OutputSink| {
        sink.push("start\n");
        sleep(INTERVAL * 2).await;
        later.add("KEY", &SecretValue::new(VALUE));
        sink.push(&format!("{VALUE}\nend\n"));
    });
    assert_eq!(updates.await.concat(), "start\n[secret KEY]\nend\n");
}

#[tokio::test]
async fn a_sink_of_a_call_that_has_ended_discards_everything() {
    let mut leaked = OutputSink::default();
    let updates = shown(Masks::default(), async |sink: OutputSink| {
        sink.push("shown");
        leaked = sink;
    });
    assert_eq!(updates.await, ["shown"]);
    assert!(!leaked.is_none());
    leaked.push("never shown");
}
