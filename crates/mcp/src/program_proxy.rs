//! The network of a program that may contact only listed hosts, through its own proxy, and the secrets that it may use
//! there.

use crate::error::ConnectError;
use lango_core::{Caller, UserId};
use lango_net::{
    Budget, Egress, HostList, HostPattern, ProgramCredentials, Proxy, ProxyHandle, ProxyOptions,
    Refusal, SecretAccess,
};
use lango_sandbox::{Child, PROXY_PORT};
use lango_secrets::{Binding, BoundSecret, Placeholder, SecretName, SecretUser};
use std::io;

/// The network access of a program.
#[derive(Debug, Clone)]
pub struct ProgramProxy {
    /// The egress guard with the budgets of turns.
    pub egress: Egress,
    /// The only hosts that the program may contact.
    pub hosts: Vec<HostPattern>,
    /// The user whose secrets it uses.
    pub user: UserId,
    /// The source of the secrets.
    pub access: SecretAccess,
    /// The variables with placeholders. The program does not start unless all of their secrets are bound to it.
    pub secrets: Vec<SecretVariable>,
}

/// An environment variable with the placeholder of a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretVariable {
    pub variable: String,
    pub name: SecretName,
}

/// The proxy of a running program.
#[derive(Debug)]
pub(crate) struct RunningProxy {
    handle: ProxyHandle,
    egress: Egress,
}

impl ProgramProxy {
    /// Prepares the secrets for a start of the program; fails if one of its variables names a secret that is not bound
    /// to it.
    pub(crate) async fn prepare(
        &self,
        server: &str,
    ) -> Result<Option<ProgramCredentials>, ConnectError> {
        let tool = Binding::mcp_server(server);
        let bound = self.access.source().bound_secrets(&self.user, &tool).await;
        let bound = bound.map_err(|error| ConnectError::Refused {
            why: format!("its secrets are not available: {error}"),
        })?;
        let is_bound = |wanted: &SecretVariable| {
            let has_name = |secret: &&BoundSecret| secret.name == wanted.name;
            let mut own = bound.iter().filter(has_name);
            own.any(|secret| secret.binding.target.is_header())
        };
        for wanted in &self.secrets {
            if let Some(why) = self.problem(wanted, is_bound(wanted), &tool).await {
                return Err(ConnectError::Refused { why });
            }
        }
        let prepared = self
            .access
            .credentials(&SecretUser::from(&self.user), &bound);
        let mut prepared = prepared.map_err(|error| ConnectError::NotStarted {
            why: format!("its secrets cannot be prepared: {error}"),
        })?;
        if let Some(program) = &mut prepared {
            for SecretVariable { variable, name } in &self.secrets {
                let placeholder = Placeholder::new(&self.user, name).to_string();
                program.variables.push((variable.clone(), placeholder));
            }
        }
        Ok(prepared)
    }

    /// Returns why the program cannot have a secret: it does not exist, has expired, or is not bound to the server.
    async fn problem(&self, wanted: &SecretVariable, is_bound: bool, tool: &str) -> Option<String> {
        let SecretVariable { variable, name } = wanted;
        let status = self.access.source().status(&self.user, name).await;
        let problem = match status {
            Ok(status) => status.problem(name),
            Err(error) => Some(error.to_string()),
        };
        let problem = problem.or_else(|| {
            (!is_bound).then(|| {
                format!(
                    "the secret `{name}` is not bound to it; run `lango secrets bind {name} --tool {tool} --host HOST --env \
                     {variable}`"
                )
            })
        });
        problem.map(|problem| {
            format!(
                "its variable `{variable}` needs the secret `{name}`, which it cannot use: {problem}"
            )
        })
    }

    /// Returns the variables that make the program use the proxy.
    pub(crate) fn variables() -> impl Iterator<Item = (String, String)> {
        Proxy::variables(PROXY_PORT)
    }

    /// Starts the proxy for a program that was just started.
    pub(crate) async fn serve(
        &self,
        server: &str,
        child: &mut Child,
        program: Option<ProgramCredentials>,
    ) -> io::Result<RunningProxy> {
        let listeners = child.listeners().await?;
        let options = ProxyOptions {
            only_hosts: Some(HostList {
                hosts: self.hosts.clone(),
                key: format!("mcp.servers.{server}.network"),
            }),
            // The handshake belongs to no turn; each call sets the budget of its turn.
            budget: Budget::new(self.egress.limits()),
            credentials: program.map(|program| program.credentials),
        };
        Ok(RunningProxy {
            handle: Proxy::serve(listeners.proxy, self.egress.clone(), options)?,
            egress: self.egress.clone(),
        })
    }
}

impl RunningProxy {
    /// Charges the requests from now on to the budget of the call's turn.
    pub(crate) fn start_call(&self, caller: &Caller) {
        let budgets = self.egress.budgets();
        self.handle
            .set_budget(budgets.of(&caller.session, &caller.turn));
    }

    /// Takes the refusals since the last call.
    pub(crate) fn refusals(&self) -> Vec<Refusal> {
        self.handle.refusals()
    }
}
