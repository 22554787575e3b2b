//! Phrases about memories, notes, documents and facts, and the calls that they lead to.

use super::{Mode, done, play};

pub(super) const MEMORIES: &[(&str, &[&str])] = &[
    // Memory
    (
        "remember that my editor is helix",
        &["chronicler memory_save my editor is helix"],
    ),
    (
        "Remember: the release is on Friday!",
        &["chronicler memory_save the release is on Friday"],
    ),
    (
        "don't forget that I like tea",
        &["chronicler memory_save I like tea"],
    ),
    ("recall my editor", &["chronicler memory_recall editor"]),
    ("What is my editor?", &["chronicler memory_recall editor"]),
    (
        "what do you remember about my dog?",
        &["chronicler memory_recall dog"],
    ),
    (
        "do you remember my name?",
        &["chronicler memory_recall name"],
    ),
    (
        "do you know my birthday?",
        &["chronicler memory_recall birthday"],
    ),
    (
        "what is the name of my dog?",
        &["chronicler memory_recall dog"],
    ),
    ("who am I?", &["chronicler memory_recall name"]),
    (
        "when is the release?",
        &["chronicler memory_recall release"],
    ),
    ("Where is the key?", &["chronicler memory_recall key"]),
    ("where is my key?", &["chronicler memory_recall key"]),
    (
        "where is the class photo?",
        &["chronicler memory_recall class photo"],
    ),
    (
        "where is the party in june?",
        &["chronicler memory_recall party june"],
    ),
    (
        "where is the bug in main.rs?",
        &["chronicler memory_recall bug main rs"],
    ),
    ("who is Ada?", &["chronicler memory_recall Ada"]),
    (
        "recall everything",
        &[
            "chronicler memory_recall 50 | a b c d e f g h i j k l m n o p q r s t u v w x y z 0 1 2 3 4 5 6 7 8 9",
        ],
    ),
    (
        "what do you remember?",
        &[
            "chronicler memory_recall 50 | a b c d e f g h i j k l m n o p q r s t u v w x y z 0 1 2 3 4 5 6 7 8 9",
        ],
    ),
    ("forget my editor", &["chronicler memory_forget editor"]),
    (
        "list your observations",
        &["chronicler memory_list_observations"],
    ),
    // Notes, documents, facts
    (
        "note that deploys: happen on Monday",
        &["librarian save_knowledge deploys: happen on Monday | deploys"],
    ),
    (
        "take a note: the key is under the mat",
        &["librarian save_knowledge the key is under the mat | the key is under the"],
    ),
    (
        "search my notes for deploys",
        &["librarian rag_retrieve deploys"],
    ),
    (
        "What do my notes say about deploys?",
        &["librarian rag_retrieve deploys"],
    ),
    (
        "do my notes mention deploys?",
        &["librarian rag_retrieve deploys"],
    ),
    (
        "find deploys in my notes",
        &["librarian rag_retrieve deploys"],
    ),
    (
        "what do you know about bread?",
        &["librarian rag_retrieve bread"],
    ),
    ("look up bread", &["librarian rag_retrieve bread"]),
    (
        "relate Ada knows \"Charles Babbage\"",
        &["librarian graph_relate Charles Babbage | knows | Ada"],
    ),
    ("what is related to Ada?", &["librarian graph_traverse Ada"]),
    ("facts about Ada", &["librarian graph_query Ada"]),
    ("which skills are there?", &["librarian list_skills"]),
];

#[test]
fn without_an_embedding_model_a_search_of_the_notes_finds_the_saved_ones() {
    let tools = &["fs_list", "save_knowledge", "search_knowledge"];
    for mode in [Mode::Specialists, Mode::Classic, Mode::Single] {
        let turn = play(mode, tools, "search my notes for invoice", done);
        assert_eq!(turn.calls.len(), 1, "{turn:#?}");
        assert!(
            turn.calls[0].ends_with(" search_knowledge invoice"),
            "{turn:#?}"
        );
    }
}
