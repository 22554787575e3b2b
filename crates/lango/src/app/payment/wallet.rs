//! What is known about the configured wallet without contacting the chain: its name in the vault, and its address,
//! which is stored unencrypted beside the key.

use super::{PaymentSource, SetupProblem};
use crate::app::failure::Failure;
use crate::app::vault::{
    LockedVault, OpenResult, PromptMode, VaultAccess, derive_address, secret_of,
};
use lango_core::RecordSelection;
use lango_payment::Address;
use lango_vault::{SecretEntry, SecretKind, SecretName};

/// The configured wallet.
pub struct StoredWallet {
    pub address: Address,
    /// The locked vault, if the address could not be authenticated.
    pub locked: Option<LockedVault>,
}

impl StoredWallet {
    /// Reads the wallet. Never prompts, and contacts nothing.
    pub async fn read(source: &PaymentSource<'_>) -> Result<Self, Failure> {
        let access = &source.vault;
        let name = wallet_name(source, access).await?;
        let sealed = access.sealed().await?;
        match access.try_open(PromptMode::Never).await? {
            OpenResult::Open(open) => {
                let address = derive_address(&open, &name).await?;
                Ok(Self {
                    address,
                    locked: None,
                })
            }
            OpenResult::Locked(locked) => {
                let entry = sealed.entries().find(|own| own.name == name);
                match entry.and_then(stored_address) {
                    Some(address) => Ok(Self {
                        address,
                        locked: Some(locked),
                    }),
                    None => Err(locked.into()),
                }
            }
        }
    }
}

fn stored_address(entry: &SecretEntry) -> Option<Address> {
    Address::parse(entry.public_id.as_deref()?).ok()
}

/// Why there is no usable wallet name.
pub(super) enum WalletNameError {
    /// The setup is incomplete.
    Setup(SetupProblem),
    /// The vault cannot be read.
    Failed(Failure),
}

impl From<Failure> for WalletNameError {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl From<SetupProblem> for WalletNameError {
    fn from(problem: SetupProblem) -> Self {
        Self::Setup(problem)
    }
}

impl From<WalletNameError> for Failure {
    fn from(error: WalletNameError) -> Self {
        match error {
            WalletNameError::Setup(problem) => problem.into(),
            WalletNameError::Failed(failure) => failure,
        }
    }
}

/// Returns the secret that `payment.wallet` names. Fails with the next step if it does not exist.
pub(super) async fn wallet_name(
    source: &PaymentSource<'_>,
    access: &VaultAccess,
) -> Result<SecretName, WalletNameError> {
    let file = source.loaded.paths.user_file.display();
    let sealed = access.read(RecordSelection::None).await?;
    let entries = sealed.iter().flat_map(|sealed| sealed.entries());
    let wallets: Vec<&SecretName> = entries
        .filter(|entry| entry.kind == SecretKind::PaymentKey)
        .map(|entry| &entry.name)
        .collect();
    let choose = |fallback: String| match wallets.as_slice() {
        [] => fallback,
        [wallet] => format!("set payment.wallet = \"secret:{wallet}\" in {file}"),
        wallets => {
            let names: Vec<&str> = wallets.iter().map(|name| name.as_str()).collect();
            format!(
                "set payment.wallet = \"secret:NAME\" in {file}, with one of: {}",
                names.join(", ")
            )
        }
    };
    let Some(setting) = &source.loaded.settings.payment.wallet else {
        return Err(SetupProblem {
            message: "`payment.wallet` is not set".to_owned(),
            next: choose(format!(
                "`lango payments wallet create`, then set payment.wallet = \"secret:WALLET_KEY\" in {file}"
            )),
        }
        .into());
    };
    let Some(name) = secret_of(setting) else {
        return Err(SetupProblem {
            message: "`payment.wallet` does not name a secret in the vault".to_owned(),
            next: choose(format!(
                "set payment.wallet = \"secret:WALLET_KEY\" in {file}"
            )),
        }
        .into());
    };
    let name = SecretName::new(name).map_err(Failure::from)?;
    let mut entries = sealed.iter().flat_map(|sealed| sealed.entries());
    let entry = entries.find(|entry| entry.name == name);
    if let Some(entry) = entry.filter(|entry| entry.kind != SecretKind::PaymentKey) {
        return Err(SetupProblem {
            message: format!(
                "`{name}`, which `payment.wallet` names, is a secret of the kind {}, not a wallet",
                entry.kind
            ),
            next: choose(format!(
                "`lango payments wallet create` creates a wallet, `lango payments wallet import NAME` stores an existing key; then set payment.wallet to it in {file}"
            )),
        }
        .into());
    }
    if entry.is_some() {
        return Ok(name);
    }
    Err(SetupProblem {
        message: format!("there is no secret `{name}`, which `payment.wallet` names"),
        next: choose(format!(
            "`lango payments wallet create {name}` creates a wallet, `lango payments wallet import {name}` stores an existing key"
        )),
    }
    .into())
}
