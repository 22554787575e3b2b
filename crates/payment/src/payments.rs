//! Payments: reserve, sign, store, send, wait. Each step is stored before the next one starts, so that this or another replica
//! can resume an interrupted payment.

mod broadcast;
mod host;
mod reconcile;

pub use reconcile::ReconcileReport;

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
    PaymentQuery, PaymentState, PaymentStore, Reservation, ReservationOutcome, SessionId, Text,
    TotalsQuery, UserId,
};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex, OnceCell};
use tokio::time::Instant;

/// Maximum length of a purpose, in characters.
pub const MAX_PURPOSE_CHARS: usize = 200;

/// Milliseconds in a day.
const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// Typical gas of a transfer, for quotes and replacements. Each new payment estimates its own gas.
const USUAL_GAS: u64 = 100_000;

/// Validity of an authorization that lango submits itself, in seconds.
const VALIDITY_S: u64 = 600;

/// Number of the wallet's newest payments that are searched for those of a user.
const MAX_SEARCHED: usize = 1000;

/// Maximum number of attempts to make a change that loses races against other replicas.
const TRIES: usize = 200;

/// The settings and dependencies of payments.
pub struct PaymentParts {
    pub network: Network,
    pub rpc: Rpc,
    /// The ledger.
    pub store: Arc<dyn PaymentStore>,
    pub key: Arc<dyn WalletKey>,
    pub clock: Arc<dyn Clock>,
    pub limits: PaymentLimits,
    /// Maximum fee of one transaction.
    pub max_fee: Wei,
    /// How long to wait for a payment to be confirmed.
    pub confirmation_timeout: Duration,
}

/// The payment service of one wallet. Clones share its state.
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
    /// The address of the wallet. It is set once the key has been read and the chain id has been checked.
    wallet: OnceCell<Address>,
    /// Lock that lets only one payment of this process at a time take an account nonce. The store detects conflicts
    /// with other replicas.
    signing: Mutex<()>,
    /// When open payments were last reconciled.
    reconciled: Mutex<Option<Instant>>,
}

/// A payment to make.
#[derive(Debug, Clone)]
pub struct PaymentOrder {
    pub user: UserId,
    pub session: SessionId,
    /// The idempotency key of the tool call.
    pub call_key: String,
    pub recipient: Address,
    pub amount: Usdc,
    pub purpose: String,
}

/// A payment for a request to a host. The host submits the authorization.
#[derive(Debug, Clone)]
pub(crate) struct HostOrder {
    pub order: PaymentOrder,
    pub host: Text,
    pub budget: BudgetUse,
    /// How long the host may take to submit the authorization, in seconds.
    pub validity_s: u64,
}

/// The cost of a payment, and what would remain of the limits.
#[derive(Debug)]
pub struct PaymentQuote {
    pub amount: Usdc,
    /// The expected network fee.
    pub fee: Wei,
    /// The maximum network fee that lango pays.
    pub fee_ceiling: Wei,
    /// The wallet's balance.
    pub balance: Usdc,
    /// What would remain of the limits, or the error that the payment would exceed a limit.
    pub left: Result<RemainingLimits, PaymentError>,
}

/// What remains of today's limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RemainingLimits {
    pub day: Usdc,
    pub recipient: Usdc,
    pub purpose: Usdc,
}

impl Payments {
    /// Creates the service, without reading the key or contacting the RPC endpoint yet.
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

    pub fn network(&self) -> Network {
        self.0.chain.network
    }

    pub fn limits(&self) -> PaymentLimits {
        self.0.limits
    }

    /// Returns the maximum fee of one transaction.
    pub fn fee_ceiling(&self) -> Wei {
        self.0.max_fee
    }

    /// Returns the address of the wallet. The first call checks that the RPC endpoint serves the configured chain.
    pub async fn wallet(&self) -> Result<Address, PaymentError> {
        let wallet = self.0.wallet.get_or_try_init(|| async {
            self.0.chain.check_id().await?;
            Ok(self.signer().await?.address())
        });
        wallet.await.copied()
    }

    /// Returns the wallet's balances: USDC, and ether for fees.
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

    /// Returns the newest payments that one user's agents made.
    pub async fn history_of(
        &self,
        user: &UserId,
        limit: usize,
    ) -> Result<Vec<Payment>, PaymentError> {
        let mut newest = self.history(MAX_SEARCHED).await?;
        newest.retain(|payment| payment.user == *user);
        newest.truncate(limit);
        Ok(newest)
    }

    /// Parses a recipient. Fails if it is the token contract or the wallet itself.
    pub async fn recipient(&self, text: &str) -> Result<Address, PaymentError> {
        let address = Address::parse(text)?;
        let problem = if address == self.network().token() {
            "it is the USDC contract, and tokens sent there are lost"
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

    /// Returns the cost of a payment, and what would remain of the limits.
    pub async fn quote(
        &self,
        amount: Usdc,
        recipient: &Address,
        purpose: &str,
    ) -> Result<PaymentQuote, PaymentError> {
        let wallet = self.wallet().await?;
        let status = self.status(&recipient.lower(), purpose).await?;
        let fees = self.current_fees(USUAL_GAS).await?;
        Ok(PaymentQuote {
            amount,
            fee: fees.max_total(),
            fee_ceiling: self.0.max_fee,
            balance: self.0.chain.balance(&wallet).await?,
            left: self.left_after(amount, &status),
        })
    }

    /// Makes a payment. An order with the same call key is paid only once, however often this is called. Returns the payment in
    /// its new state: settled, or still open if it was not confirmed in time, which is not an error.
    pub async fn send(&self, order: &PaymentOrder) -> Result<Payment, PaymentError> {
        self.reconcile_if_due().await;
        let id = self.payment_id(order).await?;
        let reserved = match self.find_payment(&id).await? {
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

    async fn reserve_transfer(&self, order: &PaymentOrder) -> Result<Payment, PaymentError> {
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

    /// Reserves the amount. Fails if it exceeds a limit.
    async fn reserve(
        &self,
        order: &PaymentOrder,
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
            ReservationOutcome::New(payment) | ReservationOutcome::Existing(payment) => Ok(payment),
            ReservationOutcome::Refused { limit, left } => Err(PaymentError::Limit {
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

    /// Returns what remains of the limits after a payment. Fails if the payment exceeds a limit.
    pub(crate) fn left_after(
        &self,
        amount: Usdc,
        status: &AccountStatus,
    ) -> Result<RemainingLimits, PaymentError> {
        let (limits, totals) = (&self.0.limits, &status.totals);
        if let Some((limit, left)) = limits.exceeded(amount.0, totals) {
            return Err(PaymentError::Limit {
                amount,
                limit,
                left: Usdc(left),
            });
        }
        let left = |limit: u64, used: u64| Usdc(limit.saturating_sub(used + amount.0));
        Ok(RemainingLimits {
            day: left(limits.day, totals.day),
            recipient: left(limits.recipient, totals.recipient),
            purpose: left(limits.purpose, totals.purpose),
        })
    }

    async fn payment_id(&self, order: &PaymentOrder) -> Result<Text, PaymentError> {
        let wallet = self.wallet().await?;
        let nonce = nonce(self.network(), &wallet, &order.call_key);
        Ok(hex(&nonce).into())
    }

    async fn find_payment(&self, id: &Text) -> Result<Option<Payment>, PaymentError> {
        let found = self.0.store.payments(PaymentQuery::Id(id.clone()), 1);
        Ok(found.await?.pop())
    }

    /// Reads a payment again, because another replica may have changed it.
    async fn reread(&self, payment: &Payment) -> Result<Payment, PaymentError> {
        let stored = self.find_payment(&payment.id).await?;
        Ok(stored.unwrap_or_else(|| payment.clone()))
    }

    /// Stores a new state with a description, unless another replica changed the payment first. Returns the payment as
    /// it is stored afterwards.
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

    /// Builds the authorization of a payment.
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

/// Fails unless the purpose is one line of text within the length limit.
pub(crate) fn check_purpose(purpose: &str) -> Result<(), PaymentError> {
    let max = MAX_PURPOSE_CHARS;
    let is_line = !purpose.trim().is_empty() && !purpose.chars().any(char::is_control);
    if is_line && purpose.chars().count() <= max {
        Ok(())
    } else {
        Err(PaymentError::Purpose { max })
    }
}

/// Fails if an order differs from the payment that the same call made before.
fn check_same(payment: &Payment, order: &PaymentOrder) -> Result<(), PaymentError> {
    let is_same = *payment.recipient == *order.recipient.lower()
        && payment.amount == order.amount.0
        && *payment.purpose == *order.purpose;
    if is_same {
        Ok(())
    } else {
        Err(PaymentError::Conflict)
    }
}
