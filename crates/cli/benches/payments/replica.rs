//! A replica: a process that makes payments over the shared database and may be killed at any moment.

use super::wallet::{KnownKey, Setup, order};
use lango_core::{
    AccountStatus, BoxFuture, BudgetKey, Payment, PaymentChange, PaymentChangeOutcome,
    PaymentLimits, PaymentQuery, PaymentState, PaymentStore, Reservation, ReservationOutcome,
    StoreError, TotalsQuery,
};
use lango_payment::{PaymentError, Payments};
use lango_store::Store;
use serde::{Deserialize, Serialize};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::thread;
use std::time::Duration;

/// Number of concurrent payments of a replica.
pub(crate) const MAX_CONCURRENT: usize = 8;

/// The configuration of all replicas of a race.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct RaceConfig {
    pub database: String,
    pub rpc: String,
    pub key: String,
    /// Maximum units per day.
    pub day: u64,
    /// Maximum units per recipient.
    pub recipient: u64,
    /// Maximum units per purpose.
    pub purpose: u64,
    /// A guard to remove, to check that the race detects it.
    pub removed_guard: Option<String>,
}

/// One payment of the race.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Job {
    pub number: u64,
    pub units: u64,
    pub recipient: u64,
    /// Number of earlier attempts.
    pub attempt: u64,
}

/// The result of a job.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Report {
    pub number: u64,
    /// The state of the payment, `limit`, or the text of another error.
    pub outcome: String,
}

/// Runs as a replica: reads jobs from standard input and writes reports to standard output.
pub(crate) fn work(config: &str) {
    let config: RaceConfig = serde_json::from_str(config).expect("a configuration");
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    let payments = config.payments();
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let job: Job = serde_json::from_str(&line).expect("a job");
        let has_keys = config.removed_guard.as_deref() != Some("keys");
        let payments = payments.clone();
        runtime.spawn(async move {
            let outcome = pay(&payments, job, has_keys).await;
            let report = Report {
                number: job.number,
                outcome,
            };
            let line = serde_json::to_string(&report).expect("JSON") + "\n";
            // The parent may have exited.
            let _ = std::io::stdout().write_all(line.as_bytes());
        });
    }
    runtime.shutdown_timeout(Duration::from_secs(30));
}

/// Pays a job. Without keys each attempt has its own idempotency key, so that it can pay again.
async fn pay(payments: &Payments, job: Job, has_keys: bool) -> String {
    let mut order = order(&format!("job-{}", job.number), job.units, job.recipient);
    if !has_keys {
        order.call_key = format!("{} attempt {}", order.call_key, job.attempt);
    }
    match payments.send(&order).await {
        Ok(payment) => payment.state.name().to_owned(),
        Err(PaymentError::Limit { .. }) => "limit".to_owned(),
        Err(error) => error.to_string(),
    }
}

impl RaceConfig {
    pub(crate) fn store(&self) -> Arc<dyn PaymentStore> {
        Arc::new(Store::at(&self.database, "root".into()).expect("a database"))
    }

    pub(crate) fn payments(&self) -> Payments {
        let store = self.store();
        let store: Arc<dyn PaymentStore> = match self.removed_guard.as_deref() {
            Some("limits") => Arc::new(UnlockedLimits(store)),
            _ => store,
        };
        let mut setup = Setup::new(self.rpc.clone(), &KnownKey(self.key.clone()), store);
        setup.limits = PaymentLimits {
            payment: self.day,
            day: self.day,
            recipient: self.recipient,
            purpose: self.purpose,
        };
        setup.timeout = Duration::from_secs(20);
        setup.payments()
    }
}

/// A store that checks the limits before the reservation instead of in the same transaction. This removes the guard
/// that the race tests.
struct UnlockedLimits(Arc<dyn PaymentStore>);

impl PaymentStore for UnlockedLimits {
    fn reserve_payment(
        &self,
        mut reservation: Reservation,
    ) -> BoxFuture<'_, Result<ReservationOutcome, StoreError>> {
        Box::pin(async move {
            let payment = &reservation.payment;
            let query = TotalsQuery {
                account: payment.account.clone(),
                day: payment.day,
                recipient: payment.recipient.clone(),
                purpose: payment.purpose.clone(),
            };
            let totals = self.0.payment_account(query).await?.totals;
            if let Some((limit, left)) = reservation.limits.exceeded(payment.amount, &totals) {
                return Ok(ReservationOutcome::Refused { limit, left });
            }
            // Let other payments pass the same check meanwhile.
            tokio::time::sleep(Duration::from_millis(60)).await;
            reservation.limits = super::wallet::NO_LIMITS;
            self.0.reserve_payment(reservation).await
        })
    }

    fn change_payment(
        &self,
        change: PaymentChange,
    ) -> BoxFuture<'_, Result<PaymentChangeOutcome, StoreError>> {
        self.0.change_payment(change)
    }

    fn payments(
        &self,
        query: PaymentQuery,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Payment>, StoreError>> {
        self.0.payments(query, limit)
    }

    fn payment_account(
        &self,
        query: TotalsQuery,
    ) -> BoxFuture<'_, Result<AccountStatus, StoreError>> {
        self.0.payment_account(query)
    }

    fn payment_budget(&self, key: BudgetKey) -> BoxFuture<'_, Result<u64, StoreError>> {
        self.0.payment_budget(key)
    }
}

/// The process of a replica.
pub(crate) struct ReplicaProcess {
    child: Child,
    stdin: ChildStdin,
    /// The jobs that it has not reported yet.
    pub jobs: Vec<Job>,
    /// Counts the replicas that were started.
    pub id: usize,
}

impl ReplicaProcess {
    /// Starts a replica. Its reports are sent to the channel together with its id.
    pub(crate) fn start(config: &RaceConfig, id: usize, reports: &Sender<(usize, Report)>) -> Self {
        let program = std::env::current_exe().expect("this program");
        let mut child = Command::new(program)
            .args(["replica", &serde_json::to_string(config).expect("JSON")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a replica starts");
        let stdout = child.stdout.take().expect("stdout is piped");
        let reports = reports.clone();
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                // The last line of a killed replica may be incomplete.
                if let Ok(report) = serde_json::from_str(&line)
                    && reports.send((id, report)).is_err()
                {
                    return;
                }
            }
        });
        let stdin = child.stdin.take().expect("stdin is piped");
        Self {
            child,
            stdin,
            jobs: Vec::new(),
            id,
        }
    }

    pub(crate) fn assign(&mut self, job: Job) {
        let line = serde_json::to_string(&job).expect("JSON") + "\n";
        // If the replica has crashed, no report arrives and the race fails.
        let _ = self.stdin.write_all(line.as_bytes());
        self.jobs.push(job);
    }

    /// Sends SIGKILL and returns the unreported jobs.
    pub(crate) fn kill(mut self) -> Vec<Job> {
        let _ = self.child.kill();
        let _ = self.child.wait();
        std::mem::take(&mut self.jobs)
    }
}

/// Returns whether a report ends a job.
pub(crate) fn is_end(report: &Report) -> bool {
    report.outcome == "limit" || PaymentState::from_name(&report.outcome).is_some()
}
