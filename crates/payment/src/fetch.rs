//! `payment_fetch`: fetches a URL, and pays for it with x402 if the host demands it. It contacts only this host and follows no
//! redirects.

use crate::amount::Usdc;
use crate::error::PaymentError;
use crate::payments::{HostOrder, PaymentOrder, Payments};
use crate::show;
use crate::x402::{Demand, refusal};
use lango_core::{BudgetUse, Caller, Inspection, Payment, SiteAccess, Text, ToolError, ToolOutput};
use lango_net::{Egress, FetchedResponse, HeaderMap, OutgoingRequest, PlainHttp, Url};
use schemars::JsonSchema;
use serde::Deserialize;

/// Maximum length of a URL, in bytes.
const MAX_URL_BYTES: usize = 4096;

/// Maximum number of bytes of a body that are read.
const MAX_BODY_BYTES: usize = 256 << 10;

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct FetchArguments {
    /// The URL to fetch, with `https`.
    #[schemars(length(min = 1, max = 4096))]
    url: String,
    /// The maximum to pay for this request, in USDC, such as "0.05".
    #[schemars(length(min = 1, max = 40))]
    max_amount: String,
    /// The maximum to pay to this host in this session, in USDC. The user allows it once, and later requests to the same host
    /// are paid from it without asking. Defaults to `max_amount`.
    #[serde(default)]
    #[schemars(length(min = 1, max = 40))]
    budget: Option<String>,
}

/// The parsed arguments.
struct Target {
    url: Url,
    host: Text,
    max_amount: Usdc,
    budget: Usdc,
}

pub(crate) struct PaidFetch {
    pub payments: Payments,
    pub egress: Egress,
}

impl PaidFetch {
    /// Reports the host to contact, and that the user must allow the call unless an allowed budget covers it.
    pub(crate) async fn inspect(&self, caller: &Caller, arguments: &FetchArguments) -> Inspection {
        let target = match self.target(arguments) {
            Ok(target) => target,
            // The call fails when it runs, so the user need not be asked.
            Err(_) => return Inspection::default(),
        };
        let left = self
            .payments
            .budget_left(&caller.user, &caller.session, &target.host)
            .await;
        let is_covered = left.is_ok_and(|left| left >= target.max_amount.0);
        let Target {
            url, host, budget, ..
        } = &target;
        let network = self.payments.network();
        Inspection {
            site: Some(SiteAccess {
                host: host.clone(),
                url: Some(url.as_str().into()),
                is_known: is_covered,
                summary: format!("fetch {url} and pay up to {}", target.max_amount).into(),
            }),
            user_only: (!is_covered).then(|| {
                format!(
                    "it may pay up to {} to `{host}` on {network}; this allows requests to `{host}` in this session \
                     to pay {budget}, in addition to earlier budgets for it",
                    target.max_amount
                )
                .into()
            }),
            ..Inspection::default()
        }
    }

    /// Shows the budget that the user would allow, and what would remain of the limits.
    pub(crate) async fn preview(&self, arguments: &FetchArguments) -> Result<String, ToolError> {
        let target = self.target(arguments)?;
        let status = self.payments.status("", &purpose_of(&target.host)).await?;
        let left = self.payments.left_after(target.budget, &status);
        Ok(show::fetch_preview(
            &self.payments,
            &target.url,
            (target.max_amount, target.budget),
            left,
        ))
    }

    pub(crate) async fn run(
        &self,
        caller: &Caller,
        arguments: &FetchArguments,
    ) -> Result<ToolOutput, ToolError> {
        let target = self.target(arguments)?;
        let inspected = caller.inspection.site.as_ref();
        if inspected.is_none_or(|site| site.host != target.host) {
            return Err(ToolError::trusted(
                "the URL differs from the one that was allowed; call payment_fetch again",
            ));
        }
        let first = self.get(caller, &target.url, &HeaderMap::new()).await?;
        if first.status != 402 {
            return Ok(show::response(&first, None).into());
        }
        let (response, payment) = self.pay(caller, &target, &first).await?;
        Ok(show::response(&response, Some(&payment)).into())
    }

    /// Pays the amount that the host demands, and repeats the request once with the payment.
    async fn pay(
        &self,
        caller: &Caller,
        target: &Target,
        demanded: &FetchedResponse,
    ) -> Result<(FetchedResponse, Payment), PaymentError> {
        let demand = Demand::read(demanded, self.payments.network())?;
        if demand.amount > target.max_amount {
            return Err(PaymentError::Terms {
                detail: format!(
                    "the host demands {}, but `max_amount` is {}",
                    demand.amount, target.max_amount
                ),
            });
        }
        let recipient = self
            .payments
            .recipient(&demand.recipient.to_string())
            .await?;
        let order = HostOrder {
            order: PaymentOrder {
                user: caller.user.clone(),
                session: caller.session.clone(),
                call_key: caller.key(),
                recipient,
                amount: demand.amount,
                purpose: purpose_of(&target.host),
            },
            host: target.host.clone(),
            // `user_only` is set if the user was asked, and only then is there a new budget.
            budget: match caller.inspection.user_only {
                Some(_) => BudgetUse::New(target.budget.0),
                None => BudgetUse::Existing,
            },
            validity_s: demand.validity_s,
        };
        let (payment, authorization, signature) = self.payments.authorize(&order).await?;
        let headers = demand.payment(&authorization, &signature)?;
        let answered = self.get(caller, &target.url, &headers).await;
        let detail = match &answered {
            Ok(response) if response.status == 402 => format!(
                "the host did not accept the payment{}; it can still use it until it expires",
                refusal(response).map_or(String::new(), |reason| format!(" ({reason})"))
            ),
            Ok(response) => format!("the host answered with status {}", response.status),
            Err(error) => format!("the host did not answer: {error}"),
        };
        let payment = self.payments.record_sent_to_host(payment, detail).await;
        Ok((answered?, payment?))
    }

    async fn get(
        &self,
        caller: &Caller,
        url: &Url,
        headers: &HeaderMap,
    ) -> Result<FetchedResponse, PaymentError> {
        let budget = self.egress.budgets().of(&caller.session, &caller.turn);
        let outgoing = OutgoingRequest {
            url,
            headers,
            json: None,
            max_bytes: MAX_BODY_BYTES,
        };
        Ok(self.egress.client().send(outgoing, &budget).await?)
    }

    fn target(&self, arguments: &FetchArguments) -> Result<Target, PaymentError> {
        let wrong = |detail: String| PaymentError::Terms { detail };
        let address = arguments.url.trim();
        if address.len() > MAX_URL_BYTES {
            return Err(wrong(format!(
                "the URL is longer than {MAX_URL_BYTES} bytes"
            )));
        }
        let mut url = Url::parse(address)
            .map_err(|error| wrong(format!("`url` is not a valid URL ({error})")))?;
        url.set_fragment(None);
        // Without encryption, an attacker on the network could replace the recipient.
        if PlainHttp::LocalOnly.check(&url).is_err() {
            return Err(wrong("the URL must start with `https://`".to_owned()));
        }
        let destination = self.egress.check(&url);
        let destination = destination.map_err(|refusal| wrong(refusal.to_string()))?;
        let max_amount = Usdc::parse_payment(&arguments.max_amount)?;
        let budget = arguments.budget.as_deref().map(Usdc::parse_payment);
        Ok(Target {
            host: destination.site().into(),
            url,
            max_amount,
            budget: budget.transpose()?.unwrap_or(max_amount).max(max_amount),
        })
    }
}

fn purpose_of(host: &str) -> String {
    let shown: String = host.chars().take(100).collect();
    format!("requests to {shown}")
}
