//! Approvals: pending requests, answers and grants.

use crate::Api;
use crate::access::{Approver, Caller, Reader};
use crate::json::{Json, Path};
use crate::model::{
    AnswerRequest, AnswerWord, ApprovalList, GrantItem, PendingDetails, PendingItem, PendingList,
};
use crate::problem::{Problem, Result};
use axum::Json as Body;
use axum::extract::State;
use axum::http::StatusCode;
use lango_core::{
    ApprovalAnswer, ApprovalId, Grant, PendingApproval, PreviewLength, SessionCatalog, Text, UserId,
};
use serde_json::{Value, json};

/// Lists the requests that wait for an answer, and the grants for later calls.
#[utoipa::path(get, path = "/api/approvals", tag = "approvals", responses(
    (status = 200, body = ApprovalList), (status = 401, body = Problem), (status = 403, body = Problem)))]
pub(super) async fn list(
    Reader(caller): Reader,
    State(api): State<Api>,
) -> Result<Body<ApprovalList>> {
    let (waiting, grants) = all(&api, &caller).await?;
    let PendingList { pending, count } = PendingList::of(waiting);
    let grants = grants.into_iter().map(|(_, grant)| GrantItem {
        not_in_force: api.context.grant_problem(&grant),
        grant,
    });
    Ok(Body(ApprovalList {
        pending,
        count,
        grants: grants.collect(),
    }))
}

/// Returns a pending request, and what its call would change.
#[utoipa::path(get, path = "/api/approvals/{id}", params(("id" = String, Path,)), tag = "approvals", responses(
    (status = 200, body = PendingDetails), (status = 400, body = Problem), (status = 401, body = Problem),
    (status = 403, body = Problem), (status = 404, body = Problem)))]
pub(super) async fn show(
    Reader(caller): Reader,
    State(api): State<Api>,
    Path(id): Path<String>,
) -> Result<Body<PendingDetails>> {
    let (user, waiting) = find(&api, &caller, &id).await?;
    let folder = &waiting.request.folder;
    let is_here = folder.is_empty() || **folder == *api.context.folder();
    let preview = if is_here {
        let runner = api.server.runner();
        runner.preview(&waiting, PreviewLength::Full).await
    } else {
        None
    };
    Ok(Body(PendingDetails {
        pending: PendingItem {
            user: user.to_string(),
            waiting,
        },
        is_here,
        preview,
    }))
}

/// Answers a request, and continues its turn on this server.
#[utoipa::path(post, path = "/api/approvals/{id}", params(("id" = String, Path,)), request_body = AnswerRequest, tag = "approvals", responses(
    (status = 202, body = Object), (status = 400, body = Problem), (status = 401, body = Problem),
    (status = 403, body = Problem), (status = 404, body = Problem), (status = 409, body = Problem),
    (status = 413, body = Problem), (status = 408, body = Problem), (status = 415, body = Problem), (status = 422, body = Problem), (status = 429, body = Problem)))]
pub(super) async fn answer(
    Approver(caller): Approver,
    State(api): State<Api>,
    Path(id): Path<String>,
    Json(request): Json<AnswerRequest>,
) -> Result<(StatusCode, Body<Value>)> {
    let (_, waiting) = find(&api, &caller, &id).await?;
    let answer = answer_of(&api, &waiting, request)?;
    api.turns.answer(&waiting, answer).await?;
    Ok((StatusCode::ACCEPTED, Body(json!({}))))
}

/// Revokes a grant.
#[utoipa::path(delete, path = "/api/grants/{id}", params(("id" = String, Path,)), tag = "approvals", responses(
    (status = 204), (status = 400, body = Problem), (status = 401, body = Problem),
    (status = 403, body = Problem), (status = 404, body = Problem)))]
pub(super) async fn revoke(
    Approver(caller): Approver,
    State(api): State<Api>,
    Path(id): Path<String>,
) -> Result<StatusCode> {
    let (_, grants) = all(&api, &caller).await?;
    let grant = grants.into_iter().find(|(_, grant)| grant.id == *id);
    let (user, grant) =
        grant.ok_or_else(|| Problem::not_found(format!("there is no grant `{id}`")))?;
    api.store.revoke(&user, &grant.id).await?;
    Ok(StatusCode::NO_CONTENT)
}

type ByUser<T> = Vec<(UserId, T)>;

/// Returns all pending requests and all grants that the caller may see, each with its user.
pub(super) async fn all(
    api: &Api,
    caller: &Caller,
) -> Result<(ByUser<PendingApproval>, ByUser<Grant>)> {
    let (mut waiting, mut grants) = (Vec::new(), Vec::new());
    for user in api.context.visible_users(&caller.user) {
        let approvals = api.store.approvals(&user).await?;
        waiting.extend(approvals.waiting.into_iter().map(|one| (user.clone(), one)));
        grants.extend(approvals.granted.into_iter().map(|one| (user.clone(), one)));
    }
    Ok((waiting, grants))
}

/// Returns a pending request that the caller may see.
pub(crate) async fn find(
    api: &Api,
    caller: &Caller,
    id: &str,
) -> Result<(UserId, PendingApproval)> {
    let (waiting, _) = all(api, caller).await?;
    let id = ApprovalId::from(id);
    let found = waiting.into_iter().find(|(_, one)| one.request.id == id);
    found.ok_or_else(|| {
        Problem::not_found(format!("no request `{id}` waits for an answer"))
            .next("it may have been answered; GET /api/approvals lists what waits")
    })
}

/// Converts the answer of a caller, and checks that it fits the pending request.
pub(crate) fn answer_of(
    api: &Api,
    waiting: &PendingApproval,
    request: AnswerRequest,
) -> Result<ApprovalAnswer> {
    let reason = request.reason.map(|reason| reason.trim().to_owned());
    let reason = reason.filter(|reason| !reason.is_empty());
    let pattern = |given: Option<&str>| -> Result<Text> {
        let pattern = api.context.grant_pattern(waiting, given);
        pattern.map_err(Problem::unprocessable)
    };
    let given = request.pattern.as_deref();
    let answer = match request.answer {
        AnswerWord::Once => ApprovalAnswer::Once,
        AnswerWord::Session => ApprovalAnswer::Session {
            pattern: pattern(given)?,
        },
        AnswerWord::Always => ApprovalAnswer::Always {
            pattern: pattern(given)?,
            folder: api.context.folder().into(),
        },
        AnswerWord::No => ApprovalAnswer::No {
            reason: reason.map(Into::into),
        },
        AnswerWord::Retry => ApprovalAnswer::Retry,
        AnswerWord::Skip => ApprovalAnswer::Skip,
        AnswerWord::Happened => ApprovalAnswer::Happened {
            text: reason
                .ok_or_else(|| {
                    Problem::unprocessable("`happened` needs a `reason`: what happened")
                })?
                .into(),
        },
    };
    if answer.fits(waiting.request.question) {
        Ok(answer)
    } else {
        let answers = match waiting.request.question {
            lango_core::ApprovalQuestion::Permission => "once, session, always or no",
            lango_core::ApprovalQuestion::UnknownOutcome => "retry, skip or happened",
            lango_core::ApprovalQuestion::ContinueTurn => "retry or skip",
        };
        Err(Problem::unprocessable(format!(
            "`{}` does not answer this request; its answers are {answers}",
            answer.name()
        )))
    }
}
