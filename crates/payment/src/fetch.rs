//! `payment_fetch`: gets a URL, and pays for it by x402 if the host demands it. Everything is sent to that one host, and to no
//! host that it redirects to.

use crate::amount::Usdc;
use crate::error::PaymentError;
use crate::payments::{HostOrder, Order, Payments};
use crate::rpc::is_loopback;
use crate::show;
use crate::x402::{Demand, refusal};
use lango_core::{BudgetUse, Caller, Inspection, Payment, SiteAccess, Text, ToolError, ToolOutput};
use lango_net::{Egress, Fetched, HeaderMap, Outgoing, Url};
use schemars::JsonSchema;
use serde::Deserialize;

/// The longest URL in bytes.
const MOST_URL: usize = 4096;

/// The longest body that is read, in bytes.
const MOST_BODY: usize = 256 << 10;

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct FetchArguments {
    /// The address, `https`.
    #[schemars(length(min = 1, max = 4096))]
    url: String,
    /// The most to pay for this request, in USDC, such as "0.05".
    #[schemars(length(min = 1, max = 40))]
    max_amount: String,
    /// The most to pay to this host in this session, in USDC. The user allows it once, and later requests to the same host
    /// are paid from it without asking. Only `max_amount` if left out.
    #[serde(default)]
    #[schemars(length(min = 1, max = 40))]
    budget: Option<String>,
}

/// The parsed arguments.
struct Target {
    url: Url,
    host: Text,
    most: Usdc,
    budget: Usdc,
}

/// The tool.
pub(crate) struct PaidFetch {
    pub payments: Payments,
    pub egress: Egress,
}

impl PaidFetch {
    /// Says which host is contacted, and that a person must allow it unless a budget that they allowed is large enough.
    pub async fn inspect(&self, caller: &Caller, arguments: &FetchArguments) -> Inspection {
        let target = match self.target(arguments) {
            Ok(target) => target,
            // It fails when it runs; a person need not be asked, but no rule may let it pass as something else.
            Err(_) => return Inspection::default(),
        };
        let left = self
            .payments
            .budget_left(&caller.user, &caller.session, &target.host)
            .await;
        let is_covered = left.is_ok_and(|left| left >= target.most.0);
        let Target {
            url, host, budget, ..
        } = &target;
        let network = self.payments.network();
        Inspection {
            site: Some(SiteAccess {
                host: host.clone(),
                url: Some(url.as_str().into()),
                is_known: is_covered,
                summary: format!("get {url} and pay up to {}", target.most).into(),
            }),
            user_only: (!is_covered).then(|| {
                format!(
                    "it may pay up to {} to `{host}` on {network}; this allows requests to `{host}` in this session \
                     to pay {budget}, besides what you allowed for it before",
                    target.most
                )
                .into()
            }),
            ..Inspection::default()
        }
    }

    /// Shows what is allowed, and what is left of the limits after it.
    pub async fn preview(&self, arguments: &FetchArguments) -> Result<String, ToolError> {
        let target = self.target(arguments)?;
        let status = self.payments.status("", &purpose_of(&target.host)).await?;
        let left = self.payments.left_after(target.budget, &status);
        Ok(show::fetch_preview(
            &self.payments,
            &target.url,
            (target.most, target.budget),
            left,
        ))
    }

    pub async fn run(
        &self,
        caller: &Caller,
        arguments: &FetchArguments,
    ) -> Result<ToolOutput, ToolError> {
        let target = self.target(arguments)?;
        let inspected = caller.inspection.site.as_ref();
        if inspected.is_none_or(|site| site.host != target.host) {
            return Err(ToolError::trusted(
                "the address is not the one that was allowed; call payment_fetch again",
            ));
        }
        let first = self.get(caller, &target.url, &HeaderMap::new()).await?;
        if first.status != 402 {
            return Ok(show::response(&first, None).into());
        }
        let (response, payment) = self.pay(caller, &target, &first).await?;
        Ok(show::response(&response, Some(&payment)).into())
    }

    /// Pays what the host demands, and sends the request again with the payment, once.
    async fn pay(
        &self,
        caller: &Caller,
        target: &Target,
        demanded: &Fetched,
    ) -> Result<(Fetched, Payment), PaymentError> {
        let demand = Demand::read(demanded, self.payments.network())?;
        if demand.amount > target.most {
            return Err(PaymentError::Terms {
                detail: format!(
                    "the host wants {}, and this call may pay {}",
                    demand.amount, target.most
                ),
            });
        }
        let recipient = self
            .payments
            .recipient(&demand.recipient.to_string())
            .await?;
        let order = HostOrder {
            order: Order {
                user: caller.user.clone(),
                session: caller.session.clone(),
                call_key: caller.key(),
                recipient,
                amount: demand.amount,
                purpose: purpose_of(&target.host),
            },
            host: target.host.clone(),
            // Only a call that a person allowed has the reason why they were asked.
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
                "the host did not accept it{}; it may still use it until it is void",
                refusal(response).map_or(String::new(), |said| format!(" ({said})"))
            ),
            Ok(response) => format!("the host answered with status {}", response.status),
            Err(error) => format!("the host did not answer: {error}"),
        };
        let payment = self.payments.sent_to_host(payment, detail).await;
        Ok((answered?, payment?))
    }

    async fn get(
        &self,
        caller: &Caller,
        url: &Url,
        headers: &HeaderMap,
    ) -> Result<Fetched, PaymentError> {
        let budget = self.egress.budgets().of(&caller.session, &caller.turn);
        let outgoing = Outgoing {
            url,
            headers,
            json: None,
            most_bytes: MOST_BODY,
        };
        Ok(self.egress.client().send(outgoing, &budget).await?)
    }

    fn target(&self, arguments: &FetchArguments) -> Result<Target, PaymentError> {
        let wrong = |detail: String| PaymentError::Terms { detail };
        let address = arguments.url.trim();
        if address.len() > MOST_URL {
            return Err(wrong(format!("the address has more than {MOST_URL} bytes")));
        }
        let mut url = Url::parse(address)
            .map_err(|error| wrong(format!("`url` is not an address ({error})")))?;
        url.set_fragment(None);
        // Who can change an answer on its way can name another recipient.
        if url.scheme() != "https" && !is_loopback(&url) {
            return Err(wrong("the address must begin with `https://`".to_owned()));
        }
        let destination = self.egress.check(&url);
        let destination = destination.map_err(|refusal| wrong(refusal.to_string()))?;
        let most = Usdc::parse_payment(&arguments.max_amount)?;
        let budget = arguments.budget.as_deref().map(Usdc::parse_payment);
        Ok(Target {
            host: destination.site().into(),
            url,
            most,
            budget: budget.transpose()?.unwrap_or(most).max(most),
        })
    }
}

fn purpose_of(host: &str) -> String {
    let shown: String = host.chars().take(100).collect();
    format!("requests to {shown}")
}
