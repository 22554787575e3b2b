//! The payment tools of the vault agent. The user must allow each payment; no rule or grant can.

use crate::amount::Usdc;
use crate::error::PaymentError;
use crate::fetch::{FetchArguments, PaidFetch};
use crate::payments::{PaymentOrder, Payments, check_purpose};
use crate::show;
use lango_core::{
    Caller, Effect, Inspection, Risk, RuleSubject, SessionId, Tool, ToolDeclaration, ToolError,
    ToolOutput, UserId,
};
use lango_net::Egress;
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;

/// Maximum number of payments that `payment_history` shows.
const MAX_HISTORY: usize = 50;

const BALANCE: ToolDeclaration = ToolDeclaration {
    name: "payment_balance",
    description: "Shows the wallet's address, its USDC balance, and its ether balance for network fees.",
    effect: Effect::Pure,
    risk: Risk::Safe,
    subject: RuleSubject::Arguments,
};

const QUOTE: ToolDeclaration = ToolDeclaration {
    name: "payment_quote",
    description: "Shows the cost of a USDC payment and what would remain of the limits, without paying.",
    effect: Effect::Pure,
    risk: Risk::Safe,
    subject: RuleSubject::Arguments,
};

const SEND: ToolDeclaration = ToolDeclaration {
    name: "payment_send",
    description: "Pays USDC to an address. The user is asked to allow each payment. An unknown result means that it may have \
                  been paid: never pay again because of it.",
    effect: Effect::Idempotent,
    risk: Risk::Dangerous,
    subject: RuleSubject::Arguments,
};

const HISTORY: ToolDeclaration = ToolDeclaration {
    name: "payment_history",
    description: "Shows the newest payments that this user's agents made, with the status of each.",
    effect: Effect::Pure,
    risk: Risk::Safe,
    subject: RuleSubject::Arguments,
};

const FETCH: ToolDeclaration = ToolDeclaration {
    name: "payment_fetch",
    description: "Fetches a URL, and pays for it in USDC (x402) if the host demands it. The user allows a budget for the host.",
    effect: Effect::Idempotent,
    risk: Risk::Dangerous,
    subject: RuleSubject::Site,
};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NoArguments {}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct HistoryArguments {
    /// Maximum number of payments to show: 20 by default, at most 50.
    #[serde(default)]
    #[schemars(range(min = 1, max = 50))]
    limit: Option<usize>,
}

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SendArguments {
    /// The amount in USDC as a decimal number, such as "12.5".
    #[schemars(length(min = 1, max = 40))]
    amount: String,
    /// The recipient's address: 0x and 40 hexadecimal digits.
    #[schemars(length(min = 42, max = 42))]
    recipient: String,
    /// What the payment is for, in a few words. The user sees it, and there is a spending limit per purpose.
    #[schemars(length(min = 1, max = 200))]
    purpose: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct QuoteArguments {
    /// The amount in USDC as a decimal number, such as "12.5".
    #[schemars(length(min = 1, max = 40))]
    amount: String,
    /// The recipient's address: 0x and 40 hexadecimal digits.
    #[schemars(length(min = 42, max = 42))]
    recipient: String,
    /// What the payment would be for.
    #[serde(default)]
    #[schemars(length(max = 200))]
    purpose: String,
}

pub fn payment_tools(payments: &Payments, egress: &Egress) -> Vec<Arc<dyn Tool>> {
    vec![
        balance_tool(payments.clone()),
        quote_tool(payments.clone()),
        send_tool(payments.clone()),
        history_tool(payments.clone()),
        fetch_tool(PaidFetch {
            payments: payments.clone(),
            egress: egress.clone(),
        }),
    ]
}

fn balance_tool(payments: Payments) -> Arc<dyn Tool> {
    BALANCE.with_code(move |_: Caller, _: NoArguments| {
        let payments = payments.clone();
        async move {
            let wallet = payments.wallet().await?;
            let (usdc, wei) = payments.balance().await?;
            let network = payments.network();
            Ok::<_, ToolError>(ToolOutput::trusted(format!(
                "wallet {wallet} on {network}: {usdc}, {wei}"
            )))
        }
    })
}

fn quote_tool(payments: Payments) -> Arc<dyn Tool> {
    QUOTE.with_code(move |_: Caller, arguments: QuoteArguments| {
        let payments = payments.clone();
        async move {
            let amount = Usdc::parse_payment(&arguments.amount)?;
            let recipient = payments.recipient(&arguments.recipient).await?;
            let quote = payments
                .quote(amount, &recipient, &arguments.purpose)
                .await?;
            Ok::<_, ToolError>(ToolOutput::trusted(show::quote(&payments, &quote)))
        }
    })
}

fn history_tool(payments: Payments) -> Arc<dyn Tool> {
    HISTORY.with_code(move |caller: Caller, arguments: HistoryArguments| {
        let payments = payments.clone();
        async move {
            // This shows the latest state if the chain answers.
            let _ = payments.reconcile().await;
            let limit = arguments.limit.unwrap_or(20).min(MAX_HISTORY);
            let history = payments.history_of(&caller.user, limit).await?;
            let rows: Vec<_> = history.iter().map(show::payment_json).collect();
            let text = serde_json::to_string_pretty(&rows);
            // Purposes and details may contain text from hosts, so the output is not trusted.
            text.map(ToolOutput::from)
                .map_err(|error| ToolError::trusted(error.to_string()))
        }
    })
}

fn send_tool(payments: Payments) -> Arc<dyn Tool> {
    let (inspecting, previewing) = (payments.clone(), payments.clone());
    SEND.with_parts(
        move |caller: Caller, arguments: SendArguments| {
            let payments = payments.clone();
            async move {
                if caller.inspection.user_only.is_none() {
                    return Err(ToolError::trusted(
                        "the user was not asked to allow this payment; call payment_send again",
                    ));
                }
                let order = order(&payments, &arguments, &caller).await?;
                let payment = payments.send(&order).await?;
                Ok(ToolOutput::trusted(show::outcome(&payment)))
            }
        },
        Some(Box::new(move |arguments: SendArguments, _| {
            let payments = previewing.clone();
            Box::pin(async move { Ok(preview(&payments, &arguments).await?) })
        })),
        Some(Box::new(move |_, arguments: SendArguments| {
            let network = inspecting.network();
            let SendArguments {
                amount, recipient, ..
            } = arguments;
            Box::pin(std::future::ready(Inspection {
                user_only: Some(
                    format!("it pays {amount} USDC to {recipient} on {network}; every payment needs your approval")
                        .into(),
                ),
                ..Inspection::default()
            }))
        })),
    )
}

fn fetch_tool(fetch: PaidFetch) -> Arc<dyn Tool> {
    let fetch = Arc::new(fetch);
    let (inspecting, previewing) = (Arc::clone(&fetch), Arc::clone(&fetch));
    FETCH.with_parts(
        move |caller: Caller, arguments: FetchArguments| {
            let fetch = Arc::clone(&fetch);
            async move { fetch.run(&caller, &arguments).await }
        },
        Some(Box::new(move |arguments: FetchArguments, _| {
            let fetch = Arc::clone(&previewing);
            Box::pin(async move { fetch.preview(&arguments).await })
        })),
        Some(Box::new(move |caller, arguments: FetchArguments| {
            let fetch = Arc::clone(&inspecting);
            Box::pin(async move { fetch.inspect(&caller, &arguments).await })
        })),
    )
}

async fn order(
    payments: &Payments,
    arguments: &SendArguments,
    caller: &Caller,
) -> Result<PaymentOrder, PaymentError> {
    Ok(PaymentOrder {
        user: caller.user.clone(),
        session: caller.session.clone(),
        call_key: caller.key(),
        ..order_for(payments, arguments).await?
    })
}

async fn order_for(
    payments: &Payments,
    arguments: &SendArguments,
) -> Result<PaymentOrder, PaymentError> {
    check_purpose(&arguments.purpose)?;
    Ok(PaymentOrder {
        user: UserId::from(""),
        session: SessionId::from(""),
        call_key: String::new(),
        recipient: payments.recipient(&arguments.recipient).await?,
        amount: Usdc::parse_payment(&arguments.amount)?,
        purpose: arguments.purpose.trim().to_owned(),
    })
}

async fn preview(payments: &Payments, arguments: &SendArguments) -> Result<String, PaymentError> {
    let order = order_for(payments, arguments).await?;
    let status = payments
        .status(&order.recipient.lower(), &order.purpose)
        .await?;
    let left = payments.left_after(order.amount, &status);
    Ok(show::order_preview(payments, &order, left))
}
