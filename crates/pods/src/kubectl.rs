//! kubectl as a scenario has it called, and held to one context for a whole run.
//!
//! How it is called is `kubernetes`' business.

use std::path::PathBuf;

use kubernetes::Kubectl;
use remote::parameter::Kind;
use scenario::Kubernetes;

use crate::error::PodsError;

/// The program, which is looked for where programs are.
const PROGRAM: &str = "kubectl";

/// kubectl, as a scenario has it called.
pub(crate) fn kubectl(kubernetes: &Kubernetes) -> Kubectl {
    Kubectl {
        program: PROGRAM.into(),
        kubeconfig: kubernetes.kubeconfig.as_ref().map(PathBuf::from),
        context: kubernetes.context.clone(),
        namespace: kubernetes.namespace.clone(),
    }
}

/// kubectl, held to the context that is current now where the scenario names none: another may be by the time that a fault is struck or
/// undone. Within a pod of the cluster there may be none.
pub(crate) fn held(kubectl: Kubectl) -> Result<Kubectl, PodsError> {
    if kubectl.context.is_some() {
        return Ok(kubectl);
    }
    let Some(context) = kubectl.current_context()? else { return Ok(kubectl) };
    if Kind::OptionalName.accepted(&context).is_none() {
        return Err(PodsError::Context { context });
    }
    Ok(Kubectl { context: Some(context), ..kubectl })
}
