//! Payments from the configuration: available if `payment.rpcUrl` and `payment.wallet` are set and the wallet's key
//! is in the vault. The key is read from the vault for each signature and never leaves this process.

mod wallet;

pub use wallet::StoredWallet;

use crate::app::Persistence;
use crate::app::failure::Failure;
use crate::app::notice::notice;
use crate::app::sessions::Storage;
use crate::app::vault::{OpenResult, PromptMode, UserVaults, VaultAccess};
use lango_config::{LoadedConfig, PaymentSettings};
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

/// Interval between reconciliations of a server.
const RECONCILE_INTERVAL: Duration = Duration::from_secs(60);

/// Whether agents can pay.
pub enum PaymentStatus {
    Ready(Payments),
    /// They cannot, because payments are not configured.
    Absent(SetupProblem),
    /// They cannot, although payments are configured.
    Broken(SetupProblem),
}

/// Why agents cannot pay.
#[derive(Debug, Clone)]
pub struct SetupProblem {
    pub message: String,
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
        Self::config(message).next(problem.next)
    }
}

/// What is needed to open the payments.
pub struct PaymentSource<'a> {
    pub loaded: &'a LoadedConfig,
    /// The vault with the wallet's key.
    pub vault: VaultAccess,
    pub storage: &'a Storage,
    /// Whether lango may prompt for the passphrase of the vault.
    pub prompt_mode: PromptMode,
    /// Where to report a key that a tool cannot use; `None` for commands, which fail with the error.
    pub reports: Option<Arc<UserVaults>>,
}

/// Returns the payment tools, if payments are set up, and their status.
pub async fn open(
    source: PaymentSource<'_>,
    persistence: Persistence,
    egress: &Egress,
) -> Result<(Vec<Arc<dyn Tool>>, PaymentStatus), Failure> {
    // Without a stored record a payment could be made twice.
    if persistence == Persistence::Nothing {
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
            notice(&format!("agents cannot pay: {why}"));
            Vec::new()
        }
    };
    Ok((tools, status))
}

/// Describes how to set the endpoint.
pub fn rpc_url_step(network: Network) -> String {
    format!("set payment.rpcUrl = \"https://…\", a JSON-RPC endpoint of {network}")
}

/// Returns the next step for an endpoint that does not work; `None` for other errors.
pub fn endpoint_step(error: &PaymentError) -> Option<&'static str> {
    match error {
        PaymentError::Unreachable { .. } | PaymentError::Refused { .. } => Some(
            "check that the endpoint in `payment.rpcUrl` is running, or set another one; run `lango config show --origin` to see where it is set",
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
            match self.access.try_open(PromptMode::Never).await {
                Ok(OpenResult::Open(open)) => Ok(open),
                Ok(OpenResult::Locked(locked)) => Err(PaymentError::Key {
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
    /// The chain answers, and the vault with the wallet's key opens.
    Working,
    /// Payments are not set up.
    Absent,
    /// The wallet's key is in a locked vault.
    Locked,
    /// Payments do not work.
    Broken,
}

impl PaymentStatus {
    /// Checks whether payments are set up. Contacts nothing, and opens the vault only if prompting is allowed. In that
    /// case, fails if the vault stays locked.
    pub async fn of(source: &PaymentSource<'_>) -> Result<Self, Failure> {
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
                next: format!("{} in {file}", rpc_url_step(settings.network)),
            }));
        };
        let rpc = match Rpc::new(url) {
            Ok(rpc) => rpc,
            Err(problem) => {
                return Ok(Self::Broken(SetupProblem {
                    message: format!("`payment.rpcUrl` cannot be used: {problem}"),
                    next: format!(
                        "{}; run `lango config show --origin` to see where it is set",
                        rpc_url_step(settings.network)
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
                    next: "run `lango doctor` to check the vault".to_owned(),
                }));
            }
        };
        let open = match source.prompt_mode {
            PromptMode::Never => None,
            prompt_mode => Some(access.open(prompt_mode).await?),
        };
        let key = VaultWallet {
            access,
            name,
            open: OnceCell::new_with(open),
            reports: source.reports.clone(),
        };
        // Ends before the call's own time limit, because a result then says more than an interrupted call.
        let longest = source.loaded.settings.agent.tool_timeout.mul_f64(0.7);
        Ok(Self::Ready(Payments::new(PaymentParts {
            network: settings.network,
            rpc,
            store: Arc::clone(&source.storage.database) as Arc<dyn PaymentStore>,
            key: Arc::new(key),
            clock: Arc::new(SystemClock),
            limits: limits(settings),
            max_fee: settings.max_gas,
            confirmation_timeout: settings.confirmation_timeout.min(longest),
        })))
    }

    /// Returns the payments; fails if they are not available.
    pub fn payments(&self) -> Result<&Payments, Failure> {
        match self {
            Self::Ready(payments) => Ok(payments),
            Self::Absent(problem) | Self::Broken(problem) => Err(problem.clone().into()),
        }
    }

    /// Reconciles open payments now and every minute, until the returned handle is dropped.
    pub fn start_reconciling(&self) -> Option<ReconcileTask> {
        let Self::Ready(payments) = self else {
            return None;
        };
        let payments = payments.clone();
        let task = tokio::spawn(async move {
            loop {
                // If this fails, the payments stay open and are tried again.
                let _ = payments.reconcile().await;
                tokio::time::sleep(RECONCILE_INTERVAL).await;
            }
        });
        Some(ReconcileTask(task.abort_handle()))
    }

    /// Describes the payments for `lango doctor`, after querying the chain.
    pub async fn describe(&self) -> (PaymentHealth, String) {
        let payments = match self {
            Self::Ready(payments) => payments,
            Self::Absent(problem) => return (PaymentHealth::Absent, format!("none; {problem}")),
            Self::Broken(problem) => return (PaymentHealth::Broken, problem.to_string()),
        };
        let limits = payments.limits();
        let usdc = lango_payment::Usdc;
        let bounds = format!(
            "at most {} per payment, {} per day, {} per recipient, {} per purpose; fee at most {}",
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
                (PaymentHealth::Working, detail)
            }
            // This read-only command does not prompt for the passphrase.
            Err(error @ PaymentError::Key { .. }) => (
                PaymentHealth::Locked,
                format!("{network}; {error}\n{bounds}"),
            ),
            Err(error) => {
                let next = endpoint_step(&error).map(|next| format!("\nnext: {next}"));
                let next = next.unwrap_or_default();
                (
                    PaymentHealth::Broken,
                    format!("{network}; {error}{next}\n{bounds}"),
                )
            }
        }
    }
}

/// Handle of the background task that reconciles payments. Dropping the handle stops the task.
pub struct ReconcileTask(AbortHandle);

impl Drop for ReconcileTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}
