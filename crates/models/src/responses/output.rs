//! Collects the output items of a reply. A stream announces an item, sends it in pieces, then complete, and repeats all
//! items at the end. Servers leave out any of these events, so missing ones are reconstructed from the others.

use super::replay::{is_call, is_message};
use crate::wire::{MAX_CALLS, ReplyBudget};
use lango_core::ModelFault;
use serde_json::{Value, json};

/// The items received so far, and the part of their text that was shown.
pub(super) struct Output {
    text: String,
    items: Vec<Item>,
    /// The item whose text was shown last.
    shown_last: Option<usize>,
    hides_commentary: bool,
    /// The budget for pieces. It is separate from the budget for items, because the same text arrives in both.
    pieces: ReplyBudget,
    values: ReplyBudget,
}

struct Item {
    index: Option<u64>,
    value: Value,
    is_complete: bool,
    /// The pieces of a message's text or of a call's arguments, joined.
    pieces: String,
    refusal: String,
}

/// A reference to the item that an event is about.
pub(super) struct ItemRef<'a> {
    pub id: &'a str,
    pub index: Option<u64>,
    pub kind: &'a str,
}

impl<'a> ItemRef<'a> {
    /// Reads from an event the reference to its item, which has this type.
    pub(super) fn of_event(event: &'a Value, kind: &'a str) -> Self {
        Self {
            id: event["item_id"].as_str().unwrap_or_default(),
            index: event["output_index"].as_u64(),
            kind,
        }
    }

    /// Refers to an item at this index.
    pub(super) fn of_item(item: &'a Value, index: Option<u64>) -> Self {
        Self {
            id: item["id"].as_str().unwrap_or_default(),
            index,
            kind: item["type"].as_str().unwrap_or_default(),
        }
    }
}

impl Output {
    /// Creates an empty output. Set `hides_commentary` if the answer must match a schema, because commentary does not.
    pub(super) fn new(hides_commentary: bool) -> Self {
        Self {
            text: String::new(),
            items: Vec::new(),
            shown_last: None,
            hides_commentary,
            pieces: ReplyBudget::new(),
            values: ReplyBudget::new(),
        }
    }

    /// Adds an item that the stream announces.
    pub(super) fn begin(&mut self, item: &Value, index: Option<u64>) -> Result<(), ModelFault> {
        let value = self.values.copy(item)?;
        self.insert(self.items.len(), index, value).map(|_| ())
    }

    /// Adds a piece of a message's text. Returns the text to show.
    pub(super) fn add_text(
        &mut self,
        item: &ItemRef<'_>,
        text: &str,
    ) -> Result<String, ModelFault> {
        let at = self.find_or_insert(item)?;
        self.pieces.add(&mut self.items[at].pieces, text)?;
        Ok(self.show(at, text))
    }

    /// Adds the complete text of a message unless it came in pieces. Returns the text to show.
    pub(super) fn finish_text(
        &mut self,
        item: &ItemRef<'_>,
        text: &str,
    ) -> Result<String, ModelFault> {
        let at = self.find_or_insert(item)?;
        if !self.items[at].pieces.is_empty() {
            return Ok(String::new());
        }
        self.add_text(item, text)
    }

    pub(super) fn add_refusal(
        &mut self,
        item: &ItemRef<'_>,
        refusal: &str,
    ) -> Result<(), ModelFault> {
        let at = self.find_or_insert(item)?;
        self.pieces.add(&mut self.items[at].refusal, refusal)
    }

    pub(super) fn add_arguments(
        &mut self,
        item: &ItemRef<'_>,
        arguments: &str,
    ) -> Result<(), ModelFault> {
        let at = self.find_or_insert(item)?;
        self.pieces.add(&mut self.items[at].pieces, arguments)
    }

    /// Adds the complete arguments of a call unless they came in pieces.
    pub(super) fn finish_arguments(
        &mut self,
        item: &ItemRef<'_>,
        whole: &str,
    ) -> Result<(), ModelFault> {
        let at = self.find_or_insert(item)?;
        if self.items[at].pieces.is_empty() {
            self.pieces.add(&mut self.items[at].pieces, whole)?;
        }
        Ok(())
    }

    /// Replaces an item with its complete form. Returns the part of its text that was not shown yet.
    pub(super) fn finish(
        &mut self,
        item: &Value,
        index: Option<u64>,
    ) -> Result<String, ModelFault> {
        let known = self.find(&ItemRef::of_item(item, index));
        let at = match known.filter(|at| !self.items[*at].is_complete) {
            Some(at) => at,
            None => self.insert(self.items.len(), index, Value::Null)?,
        };
        self.complete(at, item)
    }

    /// Adds the items at the end of a response. Returns the text that was not shown yet. Items that are complete
    /// already stay unchanged.
    pub(super) fn finish_all(&mut self, items: &[Value]) -> Result<String, ModelFault> {
        let mut shown = String::new();
        for (position, item) in items.iter().enumerate() {
            let index = Some(position as u64);
            let at = match self.find(&ItemRef::of_item(item, index)) {
                Some(at) if self.items[at].is_complete => continue,
                Some(at) => at,
                None => self.insert(position.min(self.items.len()), index, Value::Null)?,
            };
            shown.push_str(&self.complete(at, item)?);
        }
        Ok(shown)
    }

    /// Returns the text, the text of a refusal, and the complete items.
    pub(super) fn into_parts(self) -> (String, String, Vec<Value>) {
        let mut refusal = String::new();
        let mut items = Vec::new();
        for item in self.items {
            let value = item.into_value();
            refusal.push_str(&message_text(&value, "refusal", "refusal"));
            items.push(value);
        }
        (self.text, refusal, items)
    }

    fn complete(&mut self, at: usize, item: &Value) -> Result<String, ModelFault> {
        self.items[at].value = self.values.copy(item)?;
        self.items[at].is_complete = true;
        let text = message_text(item, "output_text", "text");
        if text.is_empty() || !self.items[at].pieces.is_empty() {
            return Ok(String::new());
        }
        self.pieces.add(&mut self.items[at].pieces, &text)?;
        Ok(self.show(at, &text))
    }

    /// Finds an item by its id, else by its index. Some servers give all items the same index, others change ids
    /// between events; no known server does both.
    fn find(&self, sought: &ItemRef<'_>) -> Option<usize> {
        let is_kind = |item: &Item| item.value["type"] == sought.kind;
        let has_id = |item: &Item| !sought.id.is_empty() && item.value["id"] == sought.id;
        let has_index = |item: &Item| sought.index.is_some() && item.index == sought.index;
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

    fn find_or_insert(&mut self, item: &ItemRef<'_>) -> Result<usize, ModelFault> {
        if let Some(at) = self.find(item) {
            return Ok(at);
        }
        let mut value = json!({ "type": item.kind });
        if !item.id.is_empty() {
            value["id"] = self.values.copy(&Value::from(item.id))?;
        }
        self.insert(self.items.len(), item.index, value)
    }

    fn insert(&mut self, at: usize, index: Option<u64>, value: Value) -> Result<usize, ModelFault> {
        let calls = self.items.iter().filter(|item| is_call(&item.value));
        if self.items.len() >= 4 * MAX_CALLS || calls.count() >= MAX_CALLS {
            return Err(ModelFault::Malformed {
                detail: format!("more than {MAX_CALLS} calls, or too many items"),
            });
        }
        let item = Item {
            index,
            value,
            is_complete: false,
            pieces: String::new(),
            refusal: String::new(),
        };
        self.items.insert(at, item);
        self.shown_last = self.shown_last.map(|last| last + usize::from(last >= at));
        Ok(at)
    }

    /// Appends to the text of the reply, with an empty line between two messages. Returns the text to show.
    fn show(&mut self, at: usize, text: &str) -> String {
        let is_hidden = self.hides_commentary && self.items[at].value["phase"] == "commentary";
        if text.is_empty() || is_hidden {
            return String::new();
        }
        let is_next_message = self.shown_last.is_some_and(|last| last != at);
        let shown = if is_next_message {
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
    /// Builds the complete item from its pieces.
    fn into_value(self) -> Value {
        let mut value = self.value;
        if is_call(&value) {
            if value["arguments"].as_str().is_none_or(str::is_empty) && !self.pieces.is_empty() {
                value["arguments"] = Value::from(self.pieces);
            }
            return value;
        }
        if is_message(&value) && !self.is_complete {
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
        // The announcement of a reasoning item contains only part of it.
        if value["type"] == "reasoning" && !self.is_complete {
            value["encrypted_content"] = Value::Null;
        }
        value
    }
}

/// Joins the text of all parts of one type in a message.
fn message_text(item: &Value, kind: &str, field: &str) -> String {
    let content = item["content"].as_array().filter(|_| is_message(item));
    let parts = content.into_iter().flatten();
    parts
        .filter(|part| part["type"] == kind)
        .filter_map(|part| part[field].as_str())
        .collect()
}
