//! The output items of a reply while they arrive: begun, in pieces, whole, or all of them at the end. Servers leave out any
//! of these; what is missing is put together from the rest.

use super::replay::{is_call, is_message};
use crate::wire::{CALLS, Room};
use lango_core::ModelFault;
use serde_json::{Value, json};

/// The items so far, and the text that was shown of them.
pub(super) struct Output {
    text: String,
    items: Vec<Item>,
    /// The item whose text was shown last.
    shown_last: Option<usize>,
    hides_commentary: bool,
    /// Room for pieces, and for items as they came: the same words arrive in both.
    pieces: Room,
    values: Room,
}

struct Item {
    index: Option<u64>,
    value: Value,
    is_whole: bool,
    /// Pieces of the text of a message, or of the arguments of a call.
    pieces: String,
    refusal: String,
}

/// Which item an event is about.
pub(super) struct Place<'a> {
    pub id: &'a str,
    pub index: Option<u64>,
    pub kind: &'a str,
}

impl<'a> Place<'a> {
    /// The place that an event names, for an item of this type.
    pub fn of_event(event: &'a Value, kind: &'a str) -> Self {
        Self {
            id: event["item_id"].as_str().unwrap_or_default(),
            index: event["output_index"].as_u64(),
            kind,
        }
    }

    /// The place of an item at this position.
    pub fn of_item(item: &'a Value, index: Option<u64>) -> Self {
        Self {
            id: item["id"].as_str().unwrap_or_default(),
            index,
            kind: item["type"].as_str().unwrap_or_default(),
        }
    }
}

impl Output {
    /// An output without items. Commentary is no part of an answer that must satisfy a schema.
    pub fn new(hides_commentary: bool) -> Self {
        Self {
            text: String::new(),
            items: Vec::new(),
            shown_last: None,
            hides_commentary,
            pieces: Room::new(),
            values: Room::new(),
        }
    }

    /// Starts an item, as a stream announces it.
    pub fn begin(&mut self, item: &Value, index: Option<u64>) -> Result<(), ModelFault> {
        let value = self.values.keep(item)?;
        self.insert(self.items.len(), index, value).map(|_| ())
    }

    /// Adds a piece of text: what to show at once.
    pub fn add_text(&mut self, place: &Place<'_>, text: &str) -> Result<String, ModelFault> {
        let at = self.find_or_insert(place)?;
        self.pieces.add(&mut self.items[at].pieces, text)?;
        Ok(self.show(at, text))
    }

    /// Takes the text of a message in one piece, if it did not come in pieces.
    pub fn finish_text(&mut self, place: &Place<'_>, text: &str) -> Result<String, ModelFault> {
        let at = self.find_or_insert(place)?;
        if !self.items[at].pieces.is_empty() {
            return Ok(String::new());
        }
        self.add_text(place, text)
    }

    pub fn add_refusal(&mut self, place: &Place<'_>, refusal: &str) -> Result<(), ModelFault> {
        let at = self.find_or_insert(place)?;
        self.pieces.add(&mut self.items[at].refusal, refusal)
    }

    pub fn add_arguments(&mut self, place: &Place<'_>, arguments: &str) -> Result<(), ModelFault> {
        let at = self.find_or_insert(place)?;
        self.pieces.add(&mut self.items[at].pieces, arguments)
    }

    /// Takes the arguments of a call in one piece, in place of the pieces before.
    pub fn finish_arguments(&mut self, place: &Place<'_>, whole: &str) -> Result<(), ModelFault> {
        let at = self.find_or_insert(place)?;
        if self.items[at].pieces.is_empty() {
            self.pieces.add(&mut self.items[at].pieces, whole)?;
        }
        Ok(())
    }

    /// Takes an item that a stream says is whole: the text of it that was not shown yet.
    pub fn finish(&mut self, item: &Value, index: Option<u64>) -> Result<String, ModelFault> {
        let begun = self.find(&Place::of_item(item, index));
        let at = match begun.filter(|at| !self.items[*at].is_whole) {
            Some(at) => at,
            None => self.insert(self.items.len(), index, Value::Null)?,
        };
        self.complete(at, item)
    }

    /// Takes the items that a response has at its end: the text of them that was not shown yet. Those that came before
    /// stay as they came.
    pub fn finish_all(&mut self, items: &[Value]) -> Result<String, ModelFault> {
        let mut shown = String::new();
        for (position, item) in items.iter().enumerate() {
            let index = Some(position as u64);
            let at = match self.find(&Place::of_item(item, index)) {
                Some(at) if self.items[at].is_whole => continue,
                Some(at) => at,
                None => self.insert(position.min(self.items.len()), index, Value::Null)?,
            };
            shown.push_str(&self.complete(at, item)?);
        }
        Ok(shown)
    }

    /// The text, the words of a refusal, and the items as they would have come in one piece.
    pub fn into_parts(self) -> (String, String, Vec<Value>) {
        let mut refusal = String::new();
        let mut items = Vec::new();
        for item in self.items {
            let value = item.whole();
            refusal.push_str(&message_text(&value, "refusal", "refusal"));
            items.push(value);
        }
        (self.text, refusal, items)
    }

    fn complete(&mut self, at: usize, item: &Value) -> Result<String, ModelFault> {
        self.items[at].value = self.values.keep(item)?;
        self.items[at].is_whole = true;
        let text = message_text(item, "output_text", "text");
        if text.is_empty() || !self.items[at].pieces.is_empty() {
            return Ok(String::new());
        }
        self.pieces.add(&mut self.items[at].pieces, &text)?;
        Ok(self.show(at, &text))
    }

    /// Some servers number all items alike, others change their ids from event to event; no known one does both.
    fn find(&self, place: &Place<'_>) -> Option<usize> {
        let is_kind = |item: &Item| item.value["type"] == place.kind;
        let has_id = |item: &Item| !place.id.is_empty() && item.value["id"] == place.id;
        let has_index = |item: &Item| place.index.is_some() && item.index == place.index;
        let is_nameless = |item: &Item| item.index.is_none() && item.value["id"].is_null();
        let position = |is_it: &dyn Fn(&Item) -> bool| {
            self.items
                .iter()
                .rposition(|item| is_kind(item) && is_it(item))
        };
        position(&has_id)
            .or_else(|| position(&has_index))
            .or_else(|| position(&is_nameless))
    }

    fn find_or_insert(&mut self, place: &Place<'_>) -> Result<usize, ModelFault> {
        if let Some(at) = self.find(place) {
            return Ok(at);
        }
        let mut value = json!({ "type": place.kind });
        if !place.id.is_empty() {
            value["id"] = self.values.keep(&Value::from(place.id))?;
        }
        self.insert(self.items.len(), place.index, value)
    }

    fn insert(&mut self, at: usize, index: Option<u64>, value: Value) -> Result<usize, ModelFault> {
        let calls = self.items.iter().filter(|item| is_call(&item.value));
        if self.items.len() >= 4 * CALLS || calls.count() >= CALLS {
            return Err(ModelFault::Malformed {
                detail: format!("more than {CALLS} calls, or too many items"),
            });
        }
        let item = Item {
            index,
            value,
            is_whole: false,
            pieces: String::new(),
            refusal: String::new(),
        };
        self.items.insert(at, item);
        self.shown_last = self.shown_last.map(|last| last + usize::from(last >= at));
        Ok(at)
    }

    /// Adds to the text of the reply, with an empty line between two messages.
    fn show(&mut self, at: usize, text: &str) -> String {
        let is_hidden = self.hides_commentary && self.items[at].value["phase"] == "commentary";
        if text.is_empty() || is_hidden {
            return String::new();
        }
        let begins_another = self.shown_last.is_some_and(|last| last != at);
        let shown = if begins_another {
            format!("\n\n{text}")
        } else {
            text.to_owned()
        };
        self.shown_last = Some(at);
        self.text.push_str(&shown);
        shown
    }
}

impl Item {
    fn whole(self) -> Value {
        let mut value = self.value;
        if is_call(&value) {
            if value["arguments"].as_str().is_none_or(str::is_empty) && !self.pieces.is_empty() {
                value["arguments"] = Value::from(self.pieces);
            }
            return value;
        }
        if is_message(&value) && !self.is_whole {
            let mut content = Vec::new();
            if !self.pieces.is_empty() {
                content
                    .push(json!({ "type": "output_text", "text": self.pieces, "annotations": [] }));
            }
            if !self.refusal.is_empty() {
                content.push(json!({ "type": "refusal", "refusal": self.refusal }));
            }
            value["role"] = json!("assistant");
            value["status"] = json!("completed");
            value["content"] = Value::from(content);
        }
        // What was announced of a thought is not all of it.
        if value["type"] == "reasoning" && !self.is_whole {
            value["encrypted_content"] = Value::Null;
        }
        value
    }
}

/// All text of one type of part in a message.
fn message_text(item: &Value, kind: &str, field: &str) -> String {
    let content = item["content"].as_array().filter(|_| is_message(item));
    let parts = content.into_iter().flatten();
    parts
        .filter(|part| part["type"] == kind)
        .filter_map(|part| part[field].as_str())
        .collect()
}
