//! Payments from the configuration: there when `payment.rpcUrl` and `payment.wallet` are set and the wallet's key is in the vault.
//! The key is read from the vault for each signature, and never leaves this process.

mod wallet;

pub use wallet::StoredWallet;

use crate::app::Keeping;
use crate::config::{Loaded, PaymentSettings};
use crate::exit::{Exit, Failure};
use crate::screen;
use crate::sessions::Kept;
use crate::vault::{Asking, Opening, UserVaults, VaultAccess};
use lango_core::{BoxFuture, PaymentLimits, PaymentStore, Tool};
use lango_engine::SystemClock;
use lango_net::Egress;
use lango_payment::{
    KeyBytes, Network, PaymentError, PaymentParts, Payments, Rpc, WalletKey, parse_key,
    payment_tools,
};
use lango_secrets::SecretSource;
use lango_vault::{OpenVault, SecretName};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OnceCell;
use tokio::task::AbortHandle;
use wallet::WalletNameError;

/// The time between two reconciliations of a server.
const RECONCILE_EVERY: Duration = Duration::from_secs(60);

/// Whether agents can pay.
pub enum PaymentStatus {
    /// They can.
    Ready(Payments),
    /// They cannot, because the configuration does not ask for it.
    Absent(SetupProblem),
    /// They cannot, although the configuration asks for it.
    Broken(SetupProblem),
}

/// What keeps agents from paying.
#[derive(Debug, Clone)]
pub struct SetupProblem {
    /// What is missing or wrong.
    pub message: String,
    /// The next step.
    pub next: String,
}

impl std::fmt::Display for SetupProblem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}; next: {}", self.message, self.next)
    }
}

impl From<SetupProblem> for Failure {
    fn from(problem: SetupProblem) -> Self {
        let message = format!("payments are not set up: {}", problem.message);
        Self::new(Exit::Config, message).next(problem.next)
    }
}

/// What payments are made of.
pub struct Source<'a> {
    /// The configuration.
    pub loaded: &'a Loaded,
    /// The vault with the wallet's key.
    pub vault: VaultAccess,
    /// The database.
    pub kept: &'a Kept,
    /// Whether lango may prompt for the passphrase of the vault.
    pub asking: Asking,
    /// Where a key that a tool cannot use is reported; `None` for commands, which fail with it.
    pub reports: Option<Arc<UserVaults>>,
}

/// Returns the tools, if payments are set up, and how it stands with them.
pub async fn open(
    source: Source<'_>,
    keeping: Keeping,
    egress: &Egress,
) -> Result<(Vec<Arc<dyn Tool>>, PaymentStatus), Failure> {
    // A payment that nothing is stored about could be made twice.
    if keeping == Keeping::Nothing {
        let problem = SetupProblem {
            message: "nothing is stored in this run, and payments need the ledger".to_owned(),
            next: "run it without `--ephemeral`".to_owned(),
        };
        return Ok((Vec::new(), PaymentStatus::Absent(problem)));
    }
    let status = PaymentStatus::of(&source).await?;
    let tools = match &status {
        PaymentStatus::Ready(payments) => payment_tools(payments, egress),
        PaymentStatus::Absent(_) => Vec::new(),
        PaymentStatus::Broken(why) => {
            screen::say(&format!("agents cannot pay: {why}"));
            Vec::new()
        }
    };
    Ok((tools, status))
}

/// Says how to set the endpoint.
pub fn set_rpc_url(network: Network) -> String {
    format!("set payment.rpcUrl = \"https://…\", a JSON-RPC endpoint of {network}")
}

/// Returns the next step for an endpoint that does not answer as it should; `None` for other errors.
pub fn correct_endpoint(error: &PaymentError) -> Option<&'static str> {
    match error {
        PaymentError::Unreachable { .. } | PaymentError::Refused { .. } => Some(
            "see that the endpoint of `payment.rpcUrl` runs, or set it to another one; `lango config show --origin` tells where it is set",
        ),
        _ => None,
    }
}

fn limits(settings: &PaymentSettings) -> PaymentLimits {
    PaymentLimits {
        payment: settings.max_per_payment.0,
        day: settings.max_per_day.0,
        recipient: settings.max_per_recipient.0,
        purpose: settings.max_per_purpose.0,
    }
}

/// The wallet's key in the vault.
struct VaultWallet {
    access: VaultAccess,
    name: SecretName,
    open: OnceCell<OpenVault>,
    reports: Option<Arc<UserVaults>>,
}

impl VaultWallet {
    async fn opened(&self) -> Result<&OpenVault, PaymentError> {
        let open = self.open.get_or_try_init(|| async {
            match self.access.try_open(Asking::Never).await {
                Ok(Opening::Open(open)) => Ok(open),
                Ok(Opening::Locked(locked)) => Err(PaymentError::Key {
                    detail: locked.line(),
                }),
                Err(failure) => Err(PaymentError::Key {
                    detail: failure.to_string(),
                }),
            }
        });
        open.await
    }
}

impl VaultWallet {
    async fn read_key(&self) -> Result<KeyBytes, PaymentError> {
        let open = self.opened().await?;
        let value = open.use_value(&self.name).await;
        let value = value.map_err(|error| PaymentError::Key {
            detail: error.to_string(),
        })?;
        let text = value.expose_text().ok_or_else(|| PaymentError::Key {
            detail: "it is not text".to_owned(),
        })?;
        parse_key(text)
    }
}

impl WalletKey for VaultWallet {
    fn key(&self) -> BoxFuture<'_, Result<KeyBytes, PaymentError>> {
        Box::pin(async {
            let key = self.read_key().await;
            if let (Err(error), Some(reports)) = (&key, &self.reports) {
                reports.report(&error.to_string());
            }
            key
        })
    }
}

/// Whether payments work, for `lango doctor`.
pub enum PaymentHealth {
    /// The chain answers, and the wallet opens.
    Well,
    /// They are not set up.
    Absent,
    /// The key of the wallet is in a vault that is locked here.
    Locked,
    /// They do not work.
    Faulty,
}

impl PaymentStatus {
    /// Looks whether payments are set up. Contacts nothing, and opens the vault only if it may ask; a vault that stays locked
    /// then is an error.
    pub async fn of(source: &Source<'_>) -> Result<Self, Failure> {
        let settings = &source.loaded.settings.payment;
        let file = source.loaded.paths.user_file.display();
        let access = source.vault.clone();
        let Some(url) = &settings.rpc_url.0 else {
            let other = match settings.wallet {
                Some(_) => "",
                None => "; `payment.wallet` is not set either",
            };
            return Ok(Self::Absent(SetupProblem {
                message: format!("`payment.rpcUrl` is not set{other}"),
                next: format!("{} in {file}", set_rpc_url(settings.network)),
            }));
        };
        let rpc = match Rpc::new(url) {
            Ok(rpc) => rpc,
            Err(problem) => {
                return Ok(Self::Broken(SetupProblem {
                    message: format!("`payment.rpcUrl` cannot be used: {problem}"),
                    next: format!(
                        "{}; `lango config show --origin` tells where it is set",
                        set_rpc_url(settings.network)
                    ),
                }));
            }
        };
        let name = match wallet::wallet_name(source, &access).await {
            Ok(name) => name,
            Err(WalletNameError::Setup(problem)) if settings.wallet.is_none() => {
                return Ok(Self::Absent(problem));
            }
            Err(WalletNameError::Setup(problem)) => return Ok(Self::Broken(problem)),
            Err(WalletNameError::Failed(failure)) => {
                return Ok(Self::Broken(SetupProblem {
                    message: failure.message(),
                    next: "`lango doctor` examines the vault".to_owned(),
                }));
            }
        };
        let open = match source.asking {
            Asking::Never => None,
            asking => Some(access.open(asking).await?),
        };
        let key = VaultWallet {
            access,
            name,
            open: OnceCell::new_with(open),
            reports: source.reports.clone(),
        };
        // A call that the turn cuts off would say less than one that ends by itself.
        let most = source.loaded.settings.agent.tool_timeout.mul_f64(0.7);
        Ok(Self::Ready(Payments::new(PaymentParts {
            network: settings.network,
            rpc,
            store: Arc::clone(&source.kept.database) as Arc<dyn PaymentStore>,
            key: Arc::new(key),
            clock: Arc::new(SystemClock),
            limits: limits(settings),
            max_fee: settings.max_gas,
            confirmation_timeout: settings.confirmation_timeout.min(most),
        })))
    }

    /// Returns the payments, or why there are none.
    pub fn payments(&self) -> Result<&Payments, Failure> {
        match self {
            Self::Ready(payments) => Ok(payments),
            Self::Absent(problem) | Self::Broken(problem) => Err(problem.clone().into()),
        }
    }

    /// Looks at open payments now and every minute, until the result is dropped.
    pub fn keep_reconciled(&self) -> Option<Reconciling> {
        let Self::Ready(payments) = self else {
            return None;
        };
        let payments = payments.clone();
        let task = tokio::spawn(async move {
            loop {
                // What cannot be found out now is tried again; the payments stay open meanwhile.
                let _ = payments.reconcile().await;
                tokio::time::sleep(RECONCILE_EVERY).await;
            }
        });
        Some(Reconciling(task.abort_handle()))
    }

    /// Describes it for `lango doctor`, after asking the chain; whether it is well comes first.
    pub async fn describe(&self) -> (PaymentHealth, String) {
        let payments = match self {
            Self::Ready(payments) => payments,
            Self::Absent(problem) => return (PaymentHealth::Absent, format!("none; {problem}")),
            Self::Broken(problem) => return (PaymentHealth::Faulty, problem.to_string()),
        };
        let limits = payments.limits();
        let usdc = lango_payment::Usdc;
        let bounds = format!(
            "at most {} a payment, {} a day, {} a recipient, {} a purpose; fee at most {}",
            usdc(limits.payment),
            usdc(limits.day),
            usdc(limits.recipient),
            usdc(limits.purpose),
            payments.fee_ceiling()
        );
        let network = payments.network();
        let checked = match payments.wallet().await {
            Ok(wallet) => payments.balance().await.map(|balance| (wallet, balance)),
            Err(error) => Err(error),
        };
        match checked {
            Ok((wallet, (balance, ether))) => {
                let chain = network.chain_id();
                let detail = format!(
                    "{network}, chain {chain} answers; wallet {wallet}: {balance}, {ether}\n{bounds}"
                );
                (PaymentHealth::Well, detail)
            }
            // A command that only looks does not ask for the passphrase.
            Err(error @ PaymentError::Key { .. }) => (
                PaymentHealth::Locked,
                format!("{network}; {error}\n{bounds}"),
            ),
            Err(error) => {
                let next = correct_endpoint(&error).map(|next| format!("\nnext: {next}"));
                let next = next.unwrap_or_default();
                (
                    PaymentHealth::Faulty,
                    format!("{network}; {error}{next}\n{bounds}"),
                )
            }
        }
    }
}

/// A task that ends when this is dropped.
pub struct Reconciling(AbortHandle);

impl Drop for Reconciling {
    fn drop(&mut self) {
        self.0.abort();
    }
}
