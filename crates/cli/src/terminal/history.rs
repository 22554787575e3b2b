//! The messages of earlier chats, which all chats of a user share. One line per entry, newest last, in the format of
//! earlier versions: a first line `#V2`, and `\\` and `\n` escaped.

use rustix::fs::OFlags;
use std::cell::RefCell;
use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The number of entries that are stored.
const MAX_ENTRIES: usize = 1000;
/// The maximum size of an entry in the file. A longer one is forgotten at the end of the process.
const MAX_STORED_BYTES: usize = 64 * 1024;
const HEADER: &str = "#V2";

/// Opening a pipe fails, or yields no bytes, instead of waiting for its other end.
const NO_WAIT: i32 = OFlags::NONBLOCK.bits().cast_signed();

/// Earlier messages, and the position of the user while browsing them.
#[derive(Debug, Default)]
pub struct History {
    file: PathBuf,
    entries: Vec<String>,
    /// The entry that is shown, and the message that the user was writing before.
    browsing: Option<(usize, String)>,
    /// The last search, because every frame shows what it found.
    searched: RefCell<Option<Search>>,
}

#[derive(Debug)]
struct Search {
    text: String,
    skip: usize,
    /// The entry that was found.
    found: Option<usize>,
}

impl History {
    /// Reads the history. A missing or unreadable file is an empty history.
    pub fn open(file: &Path) -> Self {
        let bytes = read(file).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        let lines = text.lines().filter(|line| *line != HEADER);
        let mut entries: Vec<String> = lines.map(unescape).collect();
        let surplus = entries.len().saturating_sub(MAX_ENTRIES);
        entries.drain(..surplus);
        let history = Self {
            file: file.to_owned(),
            entries,
            ..Self::default()
        };
        if surplus > MAX_ENTRIES {
            // The file stays as it is if it cannot be shortened.
            let _ = history.shorten();
        }
        history
    }

    /// Adds a message and saves the history.
    ///
    /// # Errors
    /// The file cannot be written; the entry is still in memory.
    pub fn add(&mut self, message: &str) -> io::Result<()> {
        self.browsing = None;
        let is_repeated = self.entries.last().is_some_and(|last| last == message);
        if is_repeated || message.trim().is_empty() {
            return Ok(());
        }
        self.searched.take();
        self.entries.push(message.to_owned());
        if self.entries.len() > MAX_ENTRIES {
            self.entries.remove(0);
        }
        if message.len() > MAX_STORED_BYTES {
            return Ok(());
        }
        self.append(message)
    }

    /// Returns the entry before the one that is shown. `current` is the text of the input: the entry that is shown, or what
    /// the user is writing. If that is the newest entry, because it was returned to the input, the one before it follows.
    pub fn older(&mut self, current: &str) -> Option<&str> {
        let is_shown = |position: usize| self.entries.get(position).is_some_and(|it| it == current);
        let browsing = self.browsing.take();
        // After a change of the entry, the text is the user's own.
        let (position, written) = match browsing.filter(|(position, _)| is_shown(*position)) {
            Some((position, written)) => (position.saturating_sub(1), written),
            None => {
                let newest = self.entries.len().checked_sub(1)?;
                let skipped = usize::from(is_shown(newest));
                (newest.saturating_sub(skipped), current.to_owned())
            }
        };
        self.browsing = Some((position, written));
        self.entries.get(position).map(String::as_str)
    }

    /// Returns the entry after the one that is shown, or at last what the user was writing; `None` if no entry is shown.
    pub fn newer(&mut self) -> Option<String> {
        let (position, written) = self.browsing.take()?;
        match self.entries.get(position + 1) {
            Some(entry) => {
                self.browsing = Some((position + 1, written));
                Some(entry.clone())
            }
            None => Some(written),
        }
    }

    /// Returns the `skip`-th newest entry that contains a text, ignoring case.
    pub fn search(&self, text: &str, skip: usize) -> Option<&str> {
        let mut searched = self.searched.borrow_mut();
        let is_same = |last: &Search| last.text == text && last.skip == skip;
        let search = match searched.take().filter(is_same) {
            Some(search) => search,
            None => Search {
                text: text.to_owned(),
                skip,
                found: self.find(&text.to_lowercase(), skip),
            },
        };
        let found = searched.insert(search).found?;
        self.entries.get(found).map(String::as_str)
    }

    fn find(&self, text: &str, skip: usize) -> Option<usize> {
        let newest_first = (0..self.entries.len()).rev();
        newest_first
            .filter(|index| self.entries[*index].to_lowercase().contains(text))
            .nth(skip)
    }

    /// Adds a line to the file, in one write: other chats add theirs at the same time.
    fn append(&self, message: &str) -> io::Result<()> {
        if let Some(folder) = self.file.parent() {
            fs::create_dir_all(folder)?;
        }
        let mut file = private_file().append(true).open(&self.file)?;
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        if metadata.mode() & 0o077 != 0 {
            file.set_permissions(fs::Permissions::from_mode(0o600))?;
        }
        let header = if metadata.len() == 0 {
            format!("{HEADER}\n")
        } else {
            String::new()
        };
        file.write_all(format!("{header}{}\n", escape(message)).as_bytes())
    }

    /// Writes the file anew, without the entries that are not stored any more.
    fn shorten(&self) -> io::Result<()> {
        let name = format!("{}.new", std::process::id());
        let new = self.file.with_extension(name);
        let lines = self.entries.iter().map(|entry| escape(entry) + "\n");
        let text: String = std::iter::once(format!("{HEADER}\n"))
            .chain(lines)
            .collect();
        let written = private_file()
            .write(true)
            .truncate(true)
            .open(&new)
            .and_then(|mut file| file.write_all(text.as_bytes()))
            .and_then(|()| fs::rename(&new, &self.file));
        if written.is_err() {
            let _ = fs::remove_file(&new);
        }
        written
    }
}

/// Reads a file; does not wait for a writer if there is a pipe in its place.
fn read(file: &Path) -> io::Result<Vec<u8>> {
    let mut options = fs::OpenOptions::new();
    let mut file = options.read(true).custom_flags(NO_WAIT).open(file)?;
    let mut bytes = Vec::new();
    if file.metadata()?.is_file() {
        file.read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

/// Returns options that create a file which the user alone can read: messages may contain anything.
fn private_file() -> fs::OpenOptions {
    let mut options = fs::OpenOptions::new();
    options.create(true).mode(0o600).custom_flags(NO_WAIT);
    options
}

fn escape(entry: &str) -> String {
    entry.replace('\\', "\\\\").replace('\n', "\\n")
}

fn unescape(line: &str) -> String {
    let mut entry = String::with_capacity(line.len());
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => match letters.next() {
                Some('n') => entry.push('\n'),
                Some(other) => entry.push(other),
                None => entry.push('\\'),
            },
            other => entry.push(other),
        }
    }
    entry
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_others_can_read_becomes_private_and_a_pipe_in_its_place_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("history");
        fs::write(&file, "#V2\nearlier\n").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        History::open(&file).add("private").unwrap();
        assert_eq!(file.metadata().unwrap().mode() & 0o777, 0o600);
        assert_eq!(History::open(&file).entries, ["earlier", "private"]);
        let pipe = folder.path().join("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).unwrap();
        let mut history = History::open(&pipe);
        assert!(history.add("a").is_err() && history.entries == ["a"]);
    }

    #[test]
    fn entries_with_several_lines_survive_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("sub/history");
        let mut history = History::open(&file);
        for entry in ["one", "two\nlines \\n", "two\nlines \\n", " "] {
            history.add(entry).unwrap();
        }
        let mut history = History::open(&file);
        assert_eq!(history.older("draft"), Some("two\nlines \\n"));
        assert_eq!(history.older("two\nlines \\n"), Some("one"));
        assert_eq!(history.older("one"), Some("one"));
        assert_eq!(history.newer().as_deref(), Some("two\nlines \\n"));
        assert_eq!(history.newer().as_deref(), Some("draft"));
        assert_eq!(history.newer(), None);
        assert_eq!(history.older("two\nlines \\n"), Some("one"));
    }

    #[test]
    fn chats_that_run_at_the_same_time_lose_no_message() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("history");
        let mut first = History::open(&file);
        let mut second = History::open(&file);
        first.add("one").unwrap();
        second.add("two").unwrap();
        first.add("three").unwrap();
        let mut third = History::open(&file);
        let mut shown = String::new();
        for expected in ["three", "two", "one"] {
            assert_eq!(third.older(&shown), Some(expected));
            shown = expected.to_owned();
        }
    }

    #[test]
    fn a_message_that_was_written_after_browsing_is_not_lost() {
        let folder = tempfile::tempdir().unwrap();
        let mut history = History::open(&folder.path().join("history"));
        history.add("one").unwrap();
        history.add("two").unwrap();
        assert_eq!(history.older("draft"), Some("two"));
        assert_eq!(history.older("a long message"), Some("two"));
        assert_eq!(history.older("two"), Some("one"));
        assert_eq!(history.newer().as_deref(), Some("two"));
        assert_eq!(history.newer().as_deref(), Some("a long message"));
    }

    #[test]
    fn a_very_long_message_can_be_returned_to_but_is_not_stored() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("history");
        let long = "x".repeat(MAX_STORED_BYTES + 1);
        let mut history = History::open(&file);
        history.add("short").unwrap();
        history.add(&long).unwrap();
        assert_eq!(history.older(""), Some(long.as_str()));
        assert_eq!(History::open(&file).older(""), Some("short"));
    }

    #[test]
    fn a_search_finds_a_message_that_was_added_since_the_same_search() {
        let folder = tempfile::tempdir().unwrap();
        let mut history = History::open(&folder.path().join("history"));
        history.add("list files").unwrap();
        assert_eq!(history.search("files", 0), Some("list files"));
        assert_eq!(history.search("files", 0), Some("list files"));
        history.add("more files").unwrap();
        assert_eq!(history.search("files", 0), Some("more files"));
        assert_eq!(history.search("files", 1), Some("list files"));
    }

    #[test]
    fn a_long_file_is_shortened() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("history");
        let lines = (0..=2 * MAX_ENTRIES).map(|number| format!("{number}\n"));
        fs::write(&file, lines.collect::<String>()).unwrap();
        History::open(&file);
        let text = fs::read_to_string(&file).unwrap();
        assert_eq!(text.lines().count(), MAX_ENTRIES + 1);
        assert_eq!(text.lines().last(), Some("2000"));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_search_goes_from_new_to_old_and_ignores_case() {
        let history = History {
            entries: ["list FILES", "hello", "files again"]
                .map(str::to_owned)
                .into(),
            ..History::default()
        };
        assert_eq!(history.search("files", 0), Some("files again"));
        assert_eq!(history.search("files", 1), Some("list FILES"));
        assert_eq!(history.search("files", 2), None);
    }
}
