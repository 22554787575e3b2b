//! Reads the operation that a client requests, and validates it by the protocol's rules.

use super::fields::Fields;
use super::refusal::{Refusal, RefusalKind, excerpt};
use super::render::{self, ShowArtifacts, View};
use super::{AgentBackend, MessageError};
use a2a::{Message, Part, PartContent, Role, TaskState};
use lango_core::{TaskQuery, Text, Timestamp};
use serde_json::{Map, Value};

/// An operation of the protocol.
#[derive(Debug)]
pub(super) enum Operation {
    Send(SendRequest),
    Stream(SendRequest),
    Get { id: String, view: View },
    List(ListRequest),
    Cancel { id: String },
    Subscribe { id: String },
}

/// A message, and how the client wants the answer.
#[derive(Debug)]
pub(super) struct SendRequest {
    pub message: Message,
    pub view: View,
    pub returns_immediately: bool,
}

#[derive(Debug)]
pub(super) struct ListRequest {
    pub query: TaskQuery,
    pub view: View,
}

/// The server's rules for the content of messages.
pub(super) struct MessageRules<'a> {
    pub backend: &'a dyn AgentBackend,
    pub input_modes: &'a [String],
}

const STATES: [(&str, Option<TaskState>); 9] = [
    ("TASK_STATE_UNSPECIFIED", None),
    ("TASK_STATE_SUBMITTED", Some(TaskState::Submitted)),
    ("TASK_STATE_WORKING", Some(TaskState::Working)),
    ("TASK_STATE_COMPLETED", Some(TaskState::Completed)),
    ("TASK_STATE_FAILED", Some(TaskState::Failed)),
    ("TASK_STATE_CANCELED", Some(TaskState::Canceled)),
    ("TASK_STATE_INPUT_REQUIRED", Some(TaskState::InputRequired)),
    ("TASK_STATE_REJECTED", Some(TaskState::Rejected)),
    ("TASK_STATE_AUTH_REQUIRED", Some(TaskState::AuthRequired)),
];

/// Reads the request of a method.
pub(super) fn read(
    method: &str,
    params: &Map<String, Value>,
    rules: &MessageRules,
) -> Result<Operation, Refusal> {
    use a2a::methods;
    let fields = Fields::new(params, "");
    let id = || fields.required_text("id").map(str::to_owned);
    match method {
        methods::SEND_MESSAGE => send(&fields, rules).map(Operation::Send),
        methods::SEND_STREAMING_MESSAGE => send(&fields, rules).map(Operation::Stream),
        methods::GET_TASK => Ok(Operation::Get {
            id: id()?,
            view: View {
                history: fields.history()?,
                ..View::default()
            },
        }),
        methods::LIST_TASKS => list(&fields).map(Operation::List),
        methods::CANCEL_TASK => Ok(Operation::Cancel { id: id()? }),
        methods::SUBSCRIBE_TO_TASK => Ok(Operation::Subscribe { id: id()? }),
        methods::CREATE_PUSH_CONFIG
        | methods::GET_PUSH_CONFIG
        | methods::LIST_PUSH_CONFIGS
        | methods::DELETE_PUSH_CONFIG => Err(no_push()),
        methods::GET_EXTENDED_AGENT_CARD => Err(Refusal::new(
            RefusalKind::UnsupportedOperation,
            "this agent has no extended card; read the public one",
        )),
        _ => {
            let message = format!("method `{}` does not exist", excerpt(method));
            Err(Refusal::new(RefusalKind::NoSuchMethod, message))
        }
    }
}

fn no_push() -> Refusal {
    Refusal::new(
        RefusalKind::PushNotSupported,
        "this agent sends no push notifications; subscribe to the task, or poll it",
    )
}

fn send(fields: &Fields, rules: &MessageRules) -> Result<SendRequest, Refusal> {
    let message = fields
        .object("message")?
        .ok_or_else(|| Refusal::field("message", "is required"))?;
    if !is_nested_within(message.values(), MAX_DEPTH) {
        let problem = format!("must not be nested more than {MAX_DEPTH} levels deep");
        return Err(Refusal::field("message", problem));
    }
    let message = read_message(&Fields::new(message, "message"))?;
    let empty = Map::new();
    let configuration = fields.object("configuration")?.unwrap_or(&empty);
    let configuration = Fields::new(configuration, "configuration");
    if configuration
        .object("taskPushNotificationConfig")?
        .is_some()
    {
        return Err(no_push());
    }
    let request = SendRequest {
        message,
        view: View {
            history: configuration.history()?,
            ..View::default()
        },
        returns_immediately: configuration.flag("returnImmediately")?,
    };
    // The agent returns the modes of its card, whatever the client accepts. But a malformed list is refused.
    configuration.texts("acceptedOutputModes")?;
    check_content(&request.message, rules)?;
    Ok(request)
}

/// How deeply a message may be nested. The stored task nests it deeper, and must stay within the JSON parser's limit.
const MAX_DEPTH: usize = 64;

fn is_nested_within<'a>(values: impl IntoIterator<Item = &'a Value>, levels: usize) -> bool {
    values.into_iter().all(|value| match value {
        Value::Array(_) | Value::Object(_) if levels == 0 => false,
        Value::Array(items) => is_nested_within(items, levels - 1),
        Value::Object(map) => is_nested_within(map.values(), levels - 1),
        _ => true,
    })
}

fn read_message(fields: &Fields) -> Result<Message, Refusal> {
    let roles = [
        ("ROLE_USER", Role::User),
        ("ROLE_AGENT", Role::Agent),
        ("ROLE_UNSPECIFIED", Role::Unspecified),
    ];
    let id = fields.id("messageId")?;
    let id = id.ok_or_else(|| Refusal::field("message.messageId", "is required"))?;
    if fields.keyword("role", &roles)? != Some(Role::User) {
        let problem = "must be `ROLE_USER`: messages to an agent come from a user";
        return Err(Refusal::field("message.role", problem));
    }
    let parts = fields.list("parts")?;
    if parts.is_empty() {
        return Err(Refusal::field("message.parts", "needs at least one part"));
    }
    let parts = parts.iter().enumerate().map(read_part);
    let metadata = fields.object("metadata")?;
    let mut message = Message::new(Role::User, parts.collect::<Result<_, _>>()?);
    message.message_id = id.to_owned();
    message.context_id = fields.id("contextId")?.map(str::to_owned);
    message.task_id = fields.text("taskId")?.map(str::to_owned);
    message.metadata = metadata.map(|map| map.clone().into_iter().collect());
    message.extensions = Some(fields.texts("extensions")?).filter(|texts| !texts.is_empty());
    message.reference_task_ids =
        Some(fields.texts("referenceTaskIds")?).filter(|texts| !texts.is_empty());
    Ok(message)
}

fn read_part((at, value): (usize, &Value)) -> Result<Part, Refusal> {
    let path = format!("message.parts[{at}]");
    let Value::Object(map) = value else {
        return Err(Refusal::field(path, "must be an object"));
    };
    let fields = Fields::new(map, &path);
    // `data` may be any value, even `null`.
    let contents = [
        ("text", fields.value("text")),
        ("raw", fields.value("raw")),
        ("url", fields.value("url")),
        ("data", fields.value_or_null("data")),
    ];
    let mut present = contents
        .into_iter()
        .filter_map(|(key, value)| Some((key, value?)));
    let (Some((key, content)), None) = (present.next(), present.next()) else {
        let problem = "must have exactly one of `text`, `raw`, `url` and `data`";
        return Err(Refusal::field(path.as_str(), problem));
    };
    if key != "data" && !content.is_string() {
        return Err(Refusal::field(fields.name(key), "must be a string"));
    }
    // Let the library parse the content.
    let plain = Map::from_iter([(key.to_owned(), content.clone())]);
    let mut part: Part = serde_json::from_value(Value::Object(plain))
        .map_err(|_| Refusal::field(fields.name(key), "must be base64"))?;
    part.filename = fields.text("filename")?.map(str::to_owned);
    part.media_type = fields.text("mediaType")?.map(str::to_owned);
    let metadata = fields.object("metadata")?;
    part.metadata = metadata.map(|map| map.clone().into_iter().collect());
    Ok(part)
}

/// Checks whether the agent accepts the parts of a message.
fn check_content(message: &Message, rules: &MessageRules) -> Result<(), Refusal> {
    for (at, part) in message.parts.iter().enumerate() {
        let media_type = part.media_type.as_deref().unwrap_or(match part.content {
            PartContent::Text(_) => "text/plain",
            PartContent::Data(_) => "application/json",
            PartContent::Raw(_) | PartContent::Url(_) => "application/octet-stream",
        });
        if !rules
            .input_modes
            .iter()
            .any(|mode| covers(mode, media_type))
        {
            let message = format!(
                "part {at} of the message has the type `{}`; this agent accepts {}",
                excerpt(media_type),
                rules.input_modes.join(", ")
            );
            return Err(Refusal::new(RefusalKind::ContentTypeNotSupported, message));
        }
    }
    rules.backend.check(message).map_err(Refusal::from)
}

impl From<MessageError> for Refusal {
    fn from(error: MessageError) -> Self {
        match error {
            MessageError::ContentType(sentence) => {
                Self::new(RefusalKind::ContentTypeNotSupported, sentence)
            }
            MessageError::Field(field, problem) => Self::field(field, problem),
        }
    }
}

/// Returns whether a mode such as `text/*` covers a media type. Parameters such as the character set are ignored.
fn covers(mode: &str, media_type: &str) -> bool {
    let essence = media_type.split(';').next().unwrap_or_default().trim();
    match mode.strip_suffix("/*") {
        Some("*") => true,
        Some(kind) => essence
            .split_once('/')
            .is_some_and(|(own, _)| own.eq_ignore_ascii_case(kind)),
        None => mode.eq_ignore_ascii_case(essence),
    }
}

/// The largest and the default size of a page.
const MAX_PAGE_SIZE: i32 = 100;
const PAGE_SIZE: i32 = 50;

fn list(fields: &Fields) -> Result<ListRequest, Refusal> {
    let state = fields.keyword("status", &STATES)?.flatten();
    let size = fields.number("pageSize", 1, MAX_PAGE_SIZE)?;
    let size = size.unwrap_or(PAGE_SIZE);
    let after = match fields.text("pageToken")? {
        None => None,
        Some(token) => Some(read_page_token(token).ok_or_else(|| {
            let problem = "was not issued by this agent; start with the first page";
            Refusal::field("pageToken", problem)
        })?),
    };
    Ok(ListRequest {
        query: TaskQuery {
            context: fields.text("contextId")?.map(Text::from),
            state: state.as_ref().map(|state| render::state_name(state).into()),
            since: fields.time("statusTimestampAfter")?,
            after,
            limit: usize::try_from(size).unwrap_or(1),
            is_counted: true,
        },
        view: View {
            history: fields.history()?,
            artifacts: if fields.flag("includeArtifacts")? {
                ShowArtifacts::Always
            } else {
                ShowArtifacts::Never
            },
        },
    })
}

/// Creates the token for the page that starts after the given task.
pub(super) fn page_token(updated: Timestamp, id: &str) -> String {
    format!("{}-{id}", updated.0)
}

fn read_page_token(token: &str) -> Option<(Timestamp, Text)> {
    let (updated, id) = token.split_once('-')?;
    let is_number = !updated.is_empty() && updated.bytes().all(|byte| byte.is_ascii_digit());
    let updated = updated.parse().ok().filter(|_| is_number)?;
    // The store uses signed times.
    let is_time = i64::try_from(updated).is_ok();
    (is_time && !id.is_empty() && id.len() <= 256).then(|| (Timestamp(updated), id.into()))
}
