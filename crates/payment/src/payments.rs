//! Payments: reserve, sign, store, send, wait. Each step is stored before the next one begins, so that whoever comes next,
//! here or on another replica, goes on where it stopped.

mod broadcast;
mod host;
mod reconcile;

pub use reconcile::Reconciled;

use crate::address::Address;
use crate::amount::Usdc;
use crate::authorization::{Authorization, nonce};
use crate::chain::Chain;
use crate::error::PaymentError;
use crate::hash::hex;
use crate::network::Network;
use crate::rpc::Rpc;
use crate::wallet::{Signer, WalletKey};
use crate::wei::Wei;
use lango_core::{
    AccountStatus, BudgetUse, Clock, Payment, PaymentAccount, PaymentChange, PaymentLimits,
    PaymentQuery, PaymentState, PaymentStore, Reservation, Reserved, SessionId, Text, TotalsQuery,
    UserId,
};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex, OnceCell};
use tokio::time::Instant;

/// The longest purpose in characters.
pub const MOST_PURPOSE: usize = 200;

/// The milliseconds of a day.
const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// The gas of a transfer, for a quote. It is estimated anew for each payment.
const USUAL_GAS: u64 = 100_000;

/// How long an authorization that lango submits itself is valid, in seconds.
const VALIDITY_S: u64 = 600;

/// The newest payments of the wallet among which those of a user are looked for.
const MOST_SEARCHED: usize = 1000;

/// How often a change is tried that another replica was faster with.
const TRIES: usize = 200;

/// The settings and dependencies of payments.
pub struct PaymentParts {
    /// The network.
    pub network: Network,
    /// The endpoint.
    pub rpc: Rpc,
    /// The ledger.
    pub store: Arc<dyn PaymentStore>,
    /// The wallet.
    pub key: Arc<dyn WalletKey>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// The limits.
    pub limits: PaymentLimits,
    /// The most that the fee of one transaction may be.
    pub max_fee: Wei,
    /// How long a payment waits to be confirmed.
    pub confirmation_timeout: Duration,
}

/// The wallet's payments. Clones share everything.
#[derive(Clone)]
pub struct Payments(Arc<Inner>);

struct Inner {
    chain: Chain,
    store: Arc<dyn PaymentStore>,
    key: Arc<dyn WalletKey>,
    clock: Arc<dyn Clock>,
    limits: PaymentLimits,
    max_fee: Wei,
    confirmation_timeout: Duration,
    /// Known once the key was read and the chain is the right one.
    wallet: OnceCell<Address>,
    /// One payment of this process after the other takes an account nonce; other replicas are noticed by the store.
    signing: Mutex<()>,
    /// When open payments were last looked at.
    reconciled: Mutex<Option<Instant>>,
}

/// A payment to make.
#[derive(Debug, Clone)]
pub struct Order {
    /// The user.
    pub user: UserId,
    /// The session.
    pub session: SessionId,
    /// The idempotency key of the call.
    pub call_key: String,
    /// The recipient.
    pub recipient: Address,
    /// The amount.
    pub amount: Usdc,
    /// What it is for.
    pub purpose: String,
}

/// A payment for a request to a host, which submits it itself.
#[derive(Debug, Clone)]
pub(crate) struct HostOrder {
    pub order: Order,
    pub host: Text,
    pub budget: BudgetUse,
    /// How long the host may take to submit it, in seconds.
    pub validity_s: u64,
}

/// What a payment would cost and what the limits leave.
#[derive(Debug)]
pub struct Quote {
    /// The amount.
    pub amount: Usdc,
    /// The usual fee.
    pub fee: Wei,
    /// The most that lango pays as a fee.
    pub fee_ceiling: Wei,
    /// What the wallet has.
    pub balance: Usdc,
    /// What is left of the limits after it; none if it exceeds one.
    pub left: Result<LimitsLeft, PaymentError>,
}

/// What is left of the limits of today.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LimitsLeft {
    /// Of the day.
    pub day: Usdc,
    /// Of the recipient.
    pub recipient: Usdc,
    /// Of the purpose.
    pub purpose: Usdc,
}

impl Payments {
    /// Creates the service. Reads and contacts nothing yet.
    pub fn new(parts: PaymentParts) -> Self {
        Self(Arc::new(Inner {
            chain: Chain::new(parts.network, parts.rpc),
            store: parts.store,
            key: parts.key,
            clock: parts.clock,
            limits: parts.limits,
            max_fee: parts.max_fee,
            confirmation_timeout: parts.confirmation_timeout,
            wallet: OnceCell::new(),
            signing: Mutex::new(()),
            reconciled: Mutex::new(None),
        }))
    }

    /// Returns the network.
    pub fn network(&self) -> Network {
        self.0.chain.network
    }

    /// Returns the limits.
    pub fn limits(&self) -> PaymentLimits {
        self.0.limits
    }

    /// Returns the most that the fee of one transaction may be.
    pub fn fee_ceiling(&self) -> Wei {
        self.0.max_fee
    }

    /// Returns the address of the wallet, after checking once that the RPC serves the configured chain.
    pub async fn wallet(&self) -> Result<Address, PaymentError> {
        let wallet = self.0.wallet.get_or_try_init(|| async {
            self.0.chain.check_id().await?;
            Ok(self.signer().await?.address())
        });
        wallet.await.copied()
    }

    /// Returns what the wallet has: USDC, and ether for fees.
    pub async fn balance(&self) -> Result<(Usdc, Wei), PaymentError> {
        let wallet = self.wallet().await?;
        let chain = &self.0.chain;
        Ok((chain.balance(&wallet).await?, chain.ether(&wallet).await?))
    }

    /// Returns the newest payments of the wallet.
    pub async fn history(&self, limit: usize) -> Result<Vec<Payment>, PaymentError> {
        let account = self.account().await?;
        let query = PaymentQuery::Newest(account);
        Ok(self.0.store.payments(query, limit).await?)
    }

    /// Returns the newest payments that one user's agents asked for.
    pub async fn history_of(
        &self,
        user: &UserId,
        limit: usize,
    ) -> Result<Vec<Payment>, PaymentError> {
        let mut newest = self.history(MOST_SEARCHED).await?;
        newest.retain(|payment| payment.user == *user);
        newest.truncate(limit);
        Ok(newest)
    }

    /// Checks a recipient: neither the token contract nor the wallet itself.
    pub async fn recipient(&self, text: &str) -> Result<Address, PaymentError> {
        let address = Address::parse(text)?;
        let problem = if address == self.network().token() {
            "it is the contract of USDC, from which nobody gets anything back"
        } else if address == self.wallet().await? {
            "it is the wallet that pays"
        } else {
            return Ok(address);
        };
        Err(PaymentError::Address {
            text: text.to_owned(),
            problem: problem.to_owned(),
        })
    }

    /// Says what a payment would cost, and what would be left of the limits.
    pub async fn quote(
        &self,
        amount: Usdc,
        recipient: &Address,
        purpose: &str,
    ) -> Result<Quote, PaymentError> {
        let wallet = self.wallet().await?;
        let status = self.status(&recipient.lower(), purpose).await?;
        let fees = self.current_fees(USUAL_GAS).await?;
        Ok(Quote {
            amount,
            fee: fees.most(),
            fee_ceiling: self.0.max_fee,
            balance: self.0.chain.balance(&wallet).await?,
            left: self.left_after(amount, &status),
        })
    }

    /// Pays. The same call key pays the same once, however often it is called. Returns the payment as it is then: settled, or
    /// open if nothing confirmed it in time, which is not a failure.
    pub async fn send(&self, order: &Order) -> Result<Payment, PaymentError> {
        self.reconcile_now_and_then().await;
        let id = self.payment_id(order).await?;
        let reserved = match self.stored(&id).await? {
            Some(payment) => payment,
            None => self.reserve_transfer(order).await?,
        };
        check_same(&reserved, order)?;
        let payment = match reserved.state {
            PaymentState::Reserved => self.sign_transfer(reserved).await?,
            _ => reserved,
        };
        if !payment.state.is_open() {
            return Ok(payment);
        }
        self.submit_and_wait(payment).await
    }

    async fn reserve_transfer(&self, order: &Order) -> Result<Payment, PaymentError> {
        let wallet = self.wallet().await?;
        let balance = self.0.chain.balance(&wallet).await?;
        if balance < order.amount {
            return Err(PaymentError::Funds {
                wallet: wallet.to_string(),
                balance,
                amount: order.amount,
            });
        }
        self.reserve(order, None, VALIDITY_S).await
    }

    /// Reserves the amount, unless a limit forbids it.
    async fn reserve(
        &self,
        order: &Order,
        host: Option<(Text, BudgetUse)>,
        validity_s: u64,
    ) -> Result<Payment, PaymentError> {
        check_purpose(&order.purpose)?;
        let now = self.0.clock.now();
        let block = self.0.chain.latest_block().await?;
        let (host, budget) = host.unzip();
        let payment = Payment {
            id: self.payment_id(order).await?,
            account: self.account().await?,
            user: order.user.clone(),
            session: order.session.clone(),
            recipient: order.recipient.lower().into(),
            purpose: order.purpose.as_str().into(),
            host,
            budget: None,
            amount: order.amount.0,
            day: now.0 / DAY_MS,
            state: PaymentState::Reserved,
            valid_before: block.timestamp.max(now.0 / 1000) + validity_s,
            authorization: None,
            transaction: None,
            detail: "reserved, not signed".into(),
            revision: 0,
            created: now,
            updated: now,
        };
        let reservation = Reservation {
            payment,
            limits: self.0.limits,
            budget,
        };
        match self.0.store.reserve_payment(reservation).await? {
            Reserved::New(payment) | Reserved::Existing(payment) => Ok(payment),
            Reserved::Refused { limit, left } => Err(PaymentError::Limit {
                amount: order.amount,
                limit,
                left: Usdc(left),
            }),
        }
    }

    pub(crate) async fn account(&self) -> Result<PaymentAccount, PaymentError> {
        Ok(PaymentAccount {
            network: self.network().name().into(),
            wallet: self.wallet().await?.lower().into(),
        })
    }

    pub(crate) async fn signer(&self) -> Result<Signer, PaymentError> {
        Signer::new(&self.0.key.key().await?)
    }

    pub(crate) async fn status(
        &self,
        recipient: &str,
        purpose: &str,
    ) -> Result<AccountStatus, PaymentError> {
        let query = TotalsQuery {
            account: self.account().await?,
            day: self.0.clock.now().0 / DAY_MS,
            recipient: recipient.into(),
            purpose: purpose.into(),
        };
        Ok(self.0.store.payment_account(query).await?)
    }

    /// Returns what is left of the limits after a payment, or the limit that forbids it.
    pub(crate) fn left_after(
        &self,
        amount: Usdc,
        status: &AccountStatus,
    ) -> Result<LimitsLeft, PaymentError> {
        let (limits, totals) = (&self.0.limits, &status.totals);
        if let Some((limit, left)) = limits.exceeded(amount.0, totals) {
            return Err(PaymentError::Limit {
                amount,
                limit,
                left: Usdc(left),
            });
        }
        let left = |most: u64, used: u64| Usdc(most.saturating_sub(used + amount.0));
        Ok(LimitsLeft {
            day: left(limits.day, totals.day),
            recipient: left(limits.recipient, totals.recipient),
            purpose: left(limits.purpose, totals.purpose),
        })
    }

    async fn payment_id(&self, order: &Order) -> Result<Text, PaymentError> {
        let wallet = self.wallet().await?;
        let nonce = nonce(self.network(), &wallet, &order.call_key);
        Ok(hex(&nonce).into())
    }

    async fn stored(&self, id: &Text) -> Result<Option<Payment>, PaymentError> {
        let found = self.0.store.payments(PaymentQuery::Id(id.clone()), 1);
        Ok(found.await?.pop())
    }

    /// Reads a payment again that another replica may have changed.
    async fn reread(&self, payment: &Payment) -> Result<Payment, PaymentError> {
        let stored = self.stored(&payment.id).await?;
        Ok(stored.unwrap_or_else(|| payment.clone()))
    }

    /// Stores a new state with what happened, and returns the payment as it is then, whoever changed it.
    async fn advance(
        &self,
        payment: &Payment,
        state: PaymentState,
        detail: impl Into<Text>,
    ) -> Result<Payment, PaymentError> {
        let change = PaymentChange {
            id: payment.id.clone(),
            expected: payment.revision,
            state,
            detail: detail.into(),
            time: self.0.clock.now(),
            authorization: None,
            transaction: None,
        };
        self.0.store.change_payment(change).await?;
        self.reread(payment).await
    }

    /// Returns the authorization of a payment.
    fn authorization(
        &self,
        wallet: Address,
        payment: &Payment,
    ) -> Result<Authorization, PaymentError> {
        let nonce = crate::hash::unhex(&payment.id).and_then(|bytes| bytes.try_into().ok());
        Ok(Authorization {
            network: self.network(),
            from: wallet,
            to: Address::parse(&payment.recipient)?,
            amount: payment.amount,
            valid_before: payment.valid_before,
            nonce: nonce.ok_or(PaymentError::Conflict)?,
        })
    }
}

/// Checks a purpose: a line of text.
pub(crate) fn check_purpose(purpose: &str) -> Result<(), PaymentError> {
    let most = MOST_PURPOSE;
    let is_line = !purpose.trim().is_empty() && !purpose.chars().any(char::is_control);
    if is_line && purpose.chars().count() <= most {
        Ok(())
    } else {
        Err(PaymentError::Purpose { most })
    }
}

/// Fails if a call asks for something else than it did before.
fn check_same(payment: &Payment, order: &Order) -> Result<(), PaymentError> {
    let is_same = *payment.recipient == *order.recipient.lower()
        && payment.amount == order.amount.0
        && *payment.purpose == *order.purpose;
    if is_same {
        Ok(())
    } else {
        Err(PaymentError::Conflict)
    }
}
