"""Search hyper-parameters of QL-DQN with Optuna; needs `pip install optuna`."""

import numpy as np
import optuna

import adalook as al


def main(trials: int = 20, steps: int = 5_000) -> None:
    """Maximise the mean score of an evaluation; trials that fall behind are stopped by a callback."""

    def objective(trial: optuna.Trial) -> float:
        agent = al.QLDQN(
            "CartPole-v1",
            learning_rate=trial.suggest_float("learning_rate", 1e-5, 1e-2, log=True),
            nodes_per_step=trial.suggest_float("nodes_per_step", 5.0, 60.0),
            seed=trial.number,
        )

        def prune(done) -> bool:
            if done.episodes:
                trial.report(float(np.mean([episode.score for episode in done.episodes])), done.step)
            return not trial.should_prune()

        agent.learn(steps=steps, callbacks=[prune], progress=False)
        if trial.should_prune():
            raise optuna.TrialPruned
        return float(agent.evaluate(episodes=5).mean)

    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=0))
    study.optimize(objective, n_trials=trials)
    print(study.best_params, study.best_value)


if __name__ == "__main__":
    main()
