// names.hpp — which names a run knows: verl's, in groups; aliases of its published configurations; verl's names that mean nothing here.
#pragma once
#include <weft/train/knob.hpp>
#include <weft/train/options.hpp>
#include <weft/train/presets.hpp>

namespace weft::train {

struct alias {
  std::string_view name, means;
};
inline constexpr alias aliases[] = {
    {"algorithm", "algorithm.name"},
    {"rollout_batch_size", "data.train_batch_size"},
    {"kv_cache_dtype", "actor_rollout_ref.rollout.kv_cache_dtype"},
    {"save_interval", "trainer.save_freq"},
    {"checkpoint_dir", "trainer.default_local_dir"},
    {"model_name_or_path", "actor_rollout_ref.model.path"},
    {"trainer.max_actor_ckpt_to_keep", "trainer.max_ckpt_to_keep"},
    {"max_actor_ckpt_to_keep", "trainer.max_ckpt_to_keep"},
    {"actor_rollout_ref.actor.grad_clip", "actor_rollout_ref.actor.optim.clip_grad"},
    {"actor.grad_clip", "actor_rollout_ref.actor.optim.clip_grad"},
    {"critic.grad_clip", "critic.optim.clip_grad"},
    {"actor_rollout_ref.actor.optim.lr_scheduler_type", "actor_rollout_ref.actor.optim.warmup_style"},
    {"actor.optim.lr_scheduler_type", "actor_rollout_ref.actor.optim.warmup_style"},
    {"critic.optim.lr_scheduler_type", "critic.optim.warmup_style"},
};

// Names that fill nothing. only: the values that mean "without it"; others are refused. Empty: any value is accepted, with a note.
struct foreign {
  std::string_view name, why, only = {};
};
inline constexpr std::string_view one_process = "one process owns the device", packed = "sequences are always packed",
                                  one_engine = "training and generation are one engine", no_pass = "log-probs are recorded while sampling",
                                  absent = "not in this version";
inline constexpr foreign foreigners[] = {
    {"actor_rollout_ref.rollout.enforce_eager", one_engine},
    {"actor_rollout_ref.rollout.free_cache_engine", "all buffers share one arena"},
    {"actor_rollout_ref.rollout.name", one_engine},
    {"actor_rollout_ref.rollout.mode", one_engine},
    {"actor_rollout_ref.rollout.load_format", one_engine},
    {"actor_rollout_ref.rollout.dtype", one_engine},
    {"actor_rollout_ref.rollout.tensor_model_parallel_size", one_process},
    {"actor_rollout_ref.rollout.enable_chunked_prefill", "prefill is always chunked"},
    {"actor_rollout_ref.rollout.calculate_log_probs", no_pass},
    {"actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu", no_pass},
    {"actor_rollout_ref.rollout.log_prob_use_dynamic_bsz", no_pass},
    {"actor_rollout_ref.rollout.log_prob_max_token_len_per_gpu", no_pass},
    {"actor_rollout_ref.rollout.gpu_memory_utilization", "the plan sizes the KV pool: rollout.kv_pages"},
    {"actor_rollout_ref.rollout.max_model_len", "prompt and response lengths give it"},
    {"actor_rollout_ref.rollout.engine_kwargs.*", one_engine},
    {"actor_rollout_ref.rollout.agent.*", one_engine},
    {"actor_rollout_ref.rollout.quantization", absent, "null"},
    {"actor_rollout_ref.rollout.ignore_eos", absent, "false"},
    {"actor_rollout_ref.rollout.multi_turn.enable", absent, "false"},
    {"actor_rollout_ref.rollout.multi_turn.*", "multi_turn.enable is false"},
    {"actor_rollout_ref.ref.log_prob_micro_batch_size_per_gpu", "the actor's micro-batches serve the reference too"},
    {"actor_rollout_ref.ref.log_prob_use_dynamic_bsz", "the actor's micro-batches serve the reference too"},
    {"actor_rollout_ref.ref.log_prob_max_token_len_per_gpu", "the actor's micro-batches serve the reference too"},
    {"actor_rollout_ref.ref.fsdp_config.*", one_process},
    {"actor_rollout_ref.actor.strategy", one_process},
    {"actor_rollout_ref.actor.fsdp_config.*", one_process},
    {"actor_rollout_ref.actor.ulysses_sequence_parallel_size", one_process},
    {"actor_rollout_ref.actor.checkpoint.*", "a checkpoint always holds everything"},
    {"actor_rollout_ref.actor.use_torch_compile", one_engine},
    {"actor_rollout_ref.hybrid_engine", one_engine},
    {"actor_rollout_ref.model.use_remove_padding", packed},
    {"actor_rollout_ref.model.use_fused_kernels", "kernels are always fused"},
    {"actor_rollout_ref.model.use_shm", one_process},
    {"actor_rollout_ref.model.trust_remote_code", "no code is loaded from a model"},
    {"actor_rollout_ref.model.lora_rank", absent, "0"},
    {"actor_rollout_ref.model.lora_alpha", "lora_rank is 0"},
    {"actor_rollout_ref.model.target_modules", "lora_rank is 0"},
    {"critic.strategy", one_process},
    {"critic.enable", "ppo has a critic, the others have none"},
    {"critic.model.use_remove_padding", packed},
    {"critic.model.fsdp_config.*", one_process},
    {"critic.use_dynamic_bsz", "set by ppo_micro_batch_size_per_gpu"},
    {"algorithm.rollout_correction.*", "not one of this engine"},
    {"algorithm.use_pf_ppo", absent, "false"},
    {"reward_model.enable", absent, "false"},
    {"reward_model.type", absent, "rule|rule-based|rule_based|null"},
    {"reward_model.endpoint", absent, "null"},
    {"reward_model.reward_manager", "the rule reward is the only manager"},
    {"custom_reward_function.path", "a reward of your own is a stage (examples/own_stage.cpp)", "null"},
    {"data.gen_batch_size", absent, "null"},
    {"data.dataloader_num_workers", "one thread reads ahead"},
    {"data.filter_overlong_prompts_workers", "rows are checked while they are read"},
    {"data.validation_shuffle", "all of it is validated, whatever the order"},
    {"data.return_raw_input_ids", "token ids are what is passed on"},
    {"data.return_raw_chat", "token ids are what is passed on"},
    {"data.return_full_prompt", "a reward sees the prompt and its row"},
    {"data.return_multi_modal_inputs", "text only"},
    {"data.image_key", "text only"},
    {"data.video_key", "text only"},
    {"data.trust_remote_code", "no code is loaded from data"},
    {"data.tokenizer", "the model's folder holds it", "null"},
    {"data.custom_cls.path", absent, "null"},
    {"data.custom_cls.name", absent, "null"},
    {"trainer.project_name", "trainer.default_local_dir names the run"},
    {"trainer.experiment_name", "trainer.default_local_dir names the run"},
    {"trainer.logger", "metrics.jsonl, TensorBoard events and report.html are always written"},
    {"trainer.nnodes", one_process},
    {"trainer.n_gpus_per_node", one_process},
    {"trainer.balance_batch", packed},
    {"trainer.device", "set device=cpu"},
    {"trainer.max_critic_ckpt_to_keep", "one checkpoint holds actor and critic: trainer.max_ckpt_to_keep"},
    {"num_rollout_workers", one_process},
    {"use_fsdp", one_process},
    {"fsdp_config.sharding_strategy", one_process},
    {"tensor_parallel_size", one_process},
    {"pipeline_parallel_size", one_process},
    {"zero_stage", one_process},
    {"gradient_sync_order", one_process},
    {"use_async_grad", one_process},
    {"grad_queue_size", one_process},
    {"load_strategy", "trainer.resume_mode says what is loaded"},
    {"device_map", one_process},
    {"use_vllm", one_engine},
    {"use_flash_attn", "attention never makes a [tokens, tokens] buffer"},
};

// Every knob of a run, bound to the fields of o, section by section.
class table {
 public:
  explicit table(options& o) {
    knobs_.reserve(128);
    data(o.data);
    add("reward.function", &o.reward.function, "how an answer is judged; auto: by the row's data_source")
        .one_of("auto|exact_match|gsm8k|boxed|regex");
    add("reward.pattern", &o.reward.pattern, "of reward.function=regex: its first group, or all of it, holds the answer");
    model_and_actor(o.actor);
    rollout(o.rollout);
    add("actor_rollout_ref.ref.model.path", &o.ref.path, "Hugging Face folder of the reference").follows("actor_rollout_ref.model.path");
    add("teacher.model.path", &o.teacher.path, "Hugging Face folder of the teacher (distill)");
    critic(o.critic);
    algorithm(o.algorithm);
    add("reward_model.overlong_buffer.enable", &o.overlong.enable, "long answers lose up to penalty_factor (DAPO)");
    add("reward_model.overlong_buffer.len", &o.overlong.len,
        "tokens before the longest answer over which the penalty rises; -1: a fifth of max_response_length")
        .in(-1, most_i32);
    add("reward_model.overlong_buffer.penalty_factor", &o.overlong.penalty_factor, "penalty of the longest answer").in(0);
    add("dpo.loss_type", &o.dpo.loss_type, "loss of a pair (dpo)").one_of("sigmoid|ipo|cdpo|hinge|robust");
    add("dpo.beta", &o.dpo.beta, "how strongly the reference holds").above(0);
    add("dpo.label_smoothing", &o.dpo.label_smoothing, "share of pairs that may be the wrong way round (cdpo, robust)").in(0, 0.499);
    add("distill.top_k", &o.distill.top_k, "likeliest ids of the teacher, the rest one bucket; -1: all").in(-1, most_i32);
    add("hybrid.sft_files", &o.hybrid.sft_files, "demonstrations: JSONL files (hybrid)");
    add("hybrid.sft_batch_size", &o.hybrid.sft_batch_size, "demonstrations a step").in(1);
    add("hybrid.dpo_files", &o.hybrid.dpo_files, "pairs: JSONL files (hybrid)");
    add("hybrid.dpo_batch_size", &o.hybrid.dpo_batch_size, "pairs a step").in(1);
    add("task_weights.sft", &o.task_weights.sft, "weight of the loss on demonstrations (hybrid)").in(0);
    add("task_weights.ppo", &o.task_weights.ppo, "weight of the policy loss on rollouts").in(0);
    add("task_weights.dpo", &o.task_weights.dpo, "weight of the loss on pairs").in(0);
    trainer(o.trainer);
    add("device", &o.device, "where the run lives; cuda is the first GPU").one_of("cpu|cuda");
    add("threads", &o.threads, "threads; 0: one a core").in(0, 1024);
    add("seed", &o.seed, "of everything random").in(0);
    add("dry_run", &o.dry_run, "print configuration, plan and memory, then stop");
    add("plan", &o.plan, "what dry_run prints: all as text, or the graph alone; stages: Mermaid without ports fed and kept")
        .one_of("text|dot|mermaid|stages");
    add("explain", &o.explain, "dry_run, and what each knob costs in bytes and predicted time");
    add("device_memory", &o.device_memory, "bytes a plan may take (141G, 512Mi); 0: what the device has").in_bytes();
  }
  std::vector<knob> take() && { return std::move(knobs_); }

 private:
  std::vector<knob> knobs_;
  static constexpr std::string_view aggregations = "token-mean|token-sum|seq-mean-token-sum|seq-mean-token-sum-norm|seq-mean-token-mean";
  static constexpr std::string_view loss_modes = "vanilla|gspo|cispo|sapo|geo_mean|gpg|dppo_tv|dppo_kl|clip_cov|kl_cov";
  static constexpr std::string_view estimators = "gae|grpo|rloo|opo|grpo_passk|gpg|reinforce_plus_plus|reinforce_plus_plus_baseline|remax";
  static constexpr double most_i32 = 2147483647;  // what the graph counts with
  static constexpr std::string_view kinds_of_kl = "kl|k1|abs|mse|k2|low_var_kl|k3|k1+|k3+";

  knob& add(std::string name, knob::field f, std::string_view help) { return knobs_.emplace_back(std::move(name), f, help); }

  void data(data_options& d) {
    add("data.train_files", &d.train_files, "training rows: JSONL files");
    add("data.train_weights", &d.train_weights, "shares of train_files in a batch, a number each; none: by their rows");
    add("data.val_files", &d.val_files, "held-out rows: JSONL files");
    add("data.prompt_key", &d.prompt_key, "field of a row that holds the prompt");
    add("data.response_key", &d.response_key,
        "field of a row that holds the response (sft); none: response, completion, answer, messages or text");
    add("data.reward_fn_key", &d.reward_fn_key, "field of a row that names its reward");
    add("data.ground_truth_key", &d.ground_truth_key, "field of a row that holds the right answer");
    add("data.train_max_samples", &d.train_max_samples,
        "rows of train_files that are used, drawn by the seed if shuffled, else the first; -1: all")
        .in(-1);
    add("data.val_max_samples", &d.val_max_samples, "the same of val_files").in(-1);
    add("data.train_batch_size", &d.train_batch_size, "prompts a step (sft: rows)").in(1);
    add("data.val_batch_size", &d.val_batch_size, "prompts validated at once; -1: all").in(-1);
    add("data.max_prompt_length", &d.max_prompt_length, "tokens").in(1);
    add("data.max_response_length", &d.max_response_length, "tokens").in(1);
    add("data.shuffle", &d.shuffle, "rows in a new order each epoch");
    add("data.seed", &d.seed, "of the order of rows; -1: the run's seed").in(-1);
    add("data.truncation", &d.truncation, "what becomes of a prompt that is too long").one_of("error|left|right|middle");
    add("data.filter_overlong_prompts", &d.filter_overlong_prompts, "leave out prompts that are too long");
    add("data.apply_chat_template_kwargs.enable_thinking", &d.chat.enable_thinking, "Qwen3; false: answers begin with an empty thought");
    add("data.apply_chat_template_kwargs.date_string", &d.chat.date_string, "Llama 3.1 and later write it into the system message");
  }

  void model_and_actor(actor_options& a) {
    add("actor_rollout_ref.model.path", &a.path, "Hugging Face folder of the policy");
    add("actor_rollout_ref.model.enable_gradient_checkpointing", &a.enable_gradient_checkpointing,
        "recompute activations in the backward pass");
    std::string const actor = "actor_rollout_ref.actor.";
    add(actor + "ppo_mini_batch_size", &a.ppo_mini_batch_size, "prompts an optimizer step").in(1);
    add(actor + "ppo_micro_batch_size_per_gpu", &a.ppo_micro_batch_size_per_gpu, "samples a micro-batch; -1: by tokens").in(-1, most_i32);
    add(actor + "use_dynamic_bsz", &a.use_dynamic_bsz, "micro-batches by tokens even if their size is set");
    add(actor + "ppo_max_token_len_per_gpu", &a.ppo_max_token_len_per_gpu, "tokens a micro-batch").in(1, most_i32);
    add(actor + "clip_ratio", &a.clip_ratio, "PPO's clip range").in(0);
    add(actor + "clip_ratio_low", &a.clip_ratio_low, "clip range below 1").in(0, 1).follows("actor_rollout_ref.actor.clip_ratio");
    add(actor + "clip_ratio_high", &a.clip_ratio_high, "clip range above 1").in(0).follows("actor_rollout_ref.actor.clip_ratio");
    add(actor + "clip_ratio_c", &a.clip_ratio_c, "dual clip: bounds the loss where the advantage is negative").above(1);
    add(actor + "policy_loss.loss_mode", &a.loss_mode, "policy loss").one_of(loss_modes);
    add(actor + "policy_loss.clip_cov_ratio", &a.clip_cov_ratio, "clip_cov: share of tokens without a gradient").in(0, 1);
    add(actor + "policy_loss.clip_cov_lb", &a.clip_cov_lb, "clip_cov: least covariance of such a token");
    add(actor + "policy_loss.clip_cov_ub", &a.clip_cov_ub, "clip_cov: highest covariance of such a token");
    add(actor + "policy_loss.kl_cov_ratio", &a.kl_cov_ratio, "kl_cov: share of tokens held by a KL term").in(0, 1);
    add(actor + "policy_loss.ppo_kl_coef", &a.ppo_kl_coef, "kl_cov: weight of that term").in(0);
    add(actor + "policy_loss.threshold_low", &a.threshold_low, "dppo: trust region of a falling probability; must be set").in(-1);
    add(actor + "policy_loss.threshold_high", &a.threshold_high, "dppo: trust region of a rising probability; must be set").in(-1);
    add(actor + "tau_pos", &a.tau_pos, "sapo: sharpness of the gate where the advantage is positive").above(0);
    add(actor + "tau_neg", &a.tau_neg, "sapo: and where it is not").above(0);
    add(actor + "loss_agg_mode", &a.loss_agg_mode, "how token losses add up").one_of(aggregations);
    add(actor + "loss_scale_factor", &a.loss_scale_factor, "of seq-mean-token-sum-norm; -1: max_response_length").in(-1);
    add(actor + "entropy_coeff", &a.entropy_coeff, "weight of the entropy bonus");
    add(actor + "use_kl_loss", &a.use_kl_loss, "KL to the reference in the loss");
    add(actor + "kl_loss_coef", &a.kl_loss_coef, "weight of the KL loss").in(0);
    add(actor + "kl_loss_type", &a.kl_loss_type, "estimator of the KL loss").one_of(kinds_of_kl);
    add(actor + "ppo_epochs", &a.ppo_epochs, "passes over a rollout").in(1);
    add(actor + "shuffle", &a.shuffle, "mini-batches in a new order each pass");
    optimizer(actor + "optim.", a.optim);
  }

  void optimizer(std::string const& at, optimizer_options& o) {
    add(at + "lr", &o.lr, "learning rate").in(0);
    add(at + "weight_decay", &o.weight_decay, "AdamW's decay, times lr a step").in(0);
    add(at + "betas", &o.betas, "AdamW's moment decays").in(0, 0.999999);
    add(at + "eps", &o.eps, "AdamW's epsilon").above(0);
    add(at + "clip_grad", &o.clip_grad, "largest global gradient norm; 0: no clipping").in(0);
    add(at + "lr_warmup_steps", &o.lr_warmup_steps, "steps of linear warm-up; -1: from the ratio").in(-1);
    add(at + "lr_warmup_steps_ratio", &o.lr_warmup_steps_ratio, "warm-up as a share of all steps").in(0, 1);
    add(at + "warmup_style", &o.warmup_style, "schedule after the warm-up").one_of("constant|cosine");
    add(at + "min_lr_ratio", &o.min_lr_ratio, "where cosine ends, as a share of lr").in(0, 1);
    add(at + "moment_dtype", &o.moment_dtype, "AdamW's moments: fp8 is eight bits and a scale for each block of 256")
        .one_of("fp32|bf16|fp8");
    add(at + "master_weights", &o.master_weights, "fp32 weights beside the bf16 ones of a GPU; false: bf16, rounded stochastically");
  }

  void rollout(rollout_options& r) {
    std::string const rollout = "actor_rollout_ref.rollout.";
    add(rollout + "n", &r.n, "samples a prompt").in(1, most_i32);
    add(rollout + "temperature", &r.temperature, "of the policy, in sampling and in training").in(1e-4, 1e4);
    add(rollout + "top_k", &r.top_k, "keep the k likeliest tokens; -1: all").in(-1, most_i32);
    add(rollout + "top_p", &r.top_p, "keep the likeliest tokens of this mass").in(0, 1).above(0);
    add(rollout + "min_p", &r.min_p, "keep tokens of at least this share of the likeliest").in(0, 1);
    add(rollout + "max_num_seqs", &r.max_num_seqs, "sequences that decode at once").in(1);
    add(rollout + "max_num_batched_tokens", &r.max_num_batched_tokens, "tokens of one prefill").in(1);
    add(rollout + "kv_cache_dtype", &r.kv_cache_dtype,
        "KV elements: auto is the compute type, fp8 is e4m3 with a scale for each token and head")
        .one_of("auto|fp8");
    add(rollout + "kv_pages", &r.kv_pages, "KV pages of 64 tokens; 0: what the worst case needs").in(0);
    add(rollout + "val_kwargs.n", &r.val_kwargs.n, "samples a held-out prompt").in(1, most_i32);
    add(rollout + "val_kwargs.do_sample", &r.val_kwargs.do_sample, "false: greedy");
    add(rollout + "val_kwargs.temperature", &r.val_kwargs.temperature, "0: greedy").in(0, 1e4);
    add(rollout + "val_kwargs.top_k", &r.val_kwargs.top_k, "as in training").in(-1, most_i32);
    add(rollout + "val_kwargs.top_p", &r.val_kwargs.top_p, "as in training").in(0, 1).above(0);
  }

  void critic(critic_options& c) {
    add("critic.model.path", &c.path, "Hugging Face folder of the critic's body").follows("actor_rollout_ref.model.path");
    add("critic.model.enable_gradient_checkpointing", &c.enable_gradient_checkpointing, "recompute activations in the backward pass")
        .follows("actor_rollout_ref.model.enable_gradient_checkpointing");
    add("critic.ppo_mini_batch_size", &c.ppo_mini_batch_size, "prompts an optimizer step")
        .in(1)
        .follows("actor_rollout_ref.actor.ppo_mini_batch_size");
    add("critic.ppo_micro_batch_size_per_gpu", &c.ppo_micro_batch_size_per_gpu, "samples a micro-batch; -1: by tokens")
        .in(-1, most_i32)
        .follows("actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu");
    add("critic.ppo_max_token_len_per_gpu", &c.ppo_max_token_len_per_gpu, "tokens a micro-batch").in(1, most_i32);
    add("critic.ppo_epochs", &c.ppo_epochs, "passes over a rollout").in(1).follows("actor_rollout_ref.actor.ppo_epochs");
    add("critic.shuffle", &c.shuffle, "mini-batches in a new order each pass").follows("actor_rollout_ref.actor.shuffle");
    add("critic.loss_agg_mode", &c.loss_agg_mode, "how token losses add up")
        .one_of(aggregations)
        .follows("actor_rollout_ref.actor.loss_agg_mode");
    add("critic.cliprange_value", &c.cliprange_value, "how far a value may move from the rollout's").in(0);
    optimizer("critic.optim.", c.optim);
  }

  void algorithm(algorithm_options& a) {
    add("algorithm.name", &a.name, "the recipe").one_of(recipe_names);
    add("algorithm.adv_estimator", &a.adv_estimator, "advantages; gae has a critic (ppo)").one_of(estimators);
    add("algorithm.gamma", &a.gamma, "discount a token").in(0, 1);
    add("algorithm.lam", &a.lam, "GAE's lambda").in(0, 1);
    add("algorithm.norm_adv_by_std_in_grpo", &a.norm_adv_by_std_in_grpo, "divide by the group's deviation; false: Dr.GRPO");
    add("algorithm.use_kl_in_reward", &a.use_kl_in_reward, "KL to the reference in the token rewards");
    add("algorithm.kl_penalty", &a.kl_penalty, "estimator of that KL").one_of(kinds_of_kl);
    add("algorithm.kl_ctrl.type", &a.kl_ctrl.type, "its coefficient").one_of("fixed|adaptive");
    add("algorithm.kl_ctrl.kl_coef", &a.kl_ctrl.kl_coef, "its (first) value").in(0);
    add("algorithm.kl_ctrl.horizon", &a.kl_ctrl.horizon, "samples over which it adapts").in(1);
    add("algorithm.kl_ctrl.target_kl", &a.kl_ctrl.target_kl, "KL it steers to, nats a token").above(0);
    auto& c = a.rollout_correction;
    add("algorithm.rollout_correction.rollout_is", &c.rollout_is, "importance weights between rollout and training, for kv_cache_dtype=fp8")
        .one_of("|token|sequence");
    add("algorithm.rollout_correction.rollout_is_threshold", &c.rollout_is_threshold,
        "where weights are cut; low_high such as 0.5_5: those outside become 0 (IcePop)");
    add("algorithm.rollout_correction.rollout_is_batch_normalize", &c.rollout_is_batch_normalize, "weights divided by their mean");
    add("algorithm.rollout_correction.rollout_rs", &c.rollout_rs, "statistic by which sequences are rejected")
        .one_of("|seq_mean_k1|seq_mean_k2|seq_mean_k3");
    add("algorithm.rollout_correction.rollout_rs_threshold", &c.rollout_rs_threshold, "above which they are; must be set with rollout_rs")
        .in(-1);
    add("algorithm.filter_groups.enable", &a.filter_groups.enable,
        "drop groups whose scores are all equal, and draw on until the step is full");
    add("algorithm.filter_groups.metric", &a.filter_groups.metric, "what has to differ: acc without the length penalty, or the score")
        .one_of("acc|score|seq_reward|seq_final_reward");
    add("algorithm.filter_groups.max_num_gen_batches", &a.filter_groups.max_num_gen_batches,
        "batches drawn for a step; 0: as many as it takes")
        .in(0);
  }

  void trainer(trainer_options& t) {
    add("trainer.total_epochs", &t.total_epochs, "passes over the training rows").in(1);
    add("trainer.total_training_steps", &t.total_training_steps, "steps; -1: from total_epochs").in(-1);
    add("trainer.save_freq", &t.save_freq, "steps between checkpoints; -1: at the end only").in(-1);
    add("trainer.test_freq", &t.test_freq, "steps between validations; -1: at the end only").in(-1);
    add("trainer.val_before_train", &t.val_before_train, "validate before the first step");
    add("trainer.val_only", &t.val_only, "validate, then stop");
    add("trainer.critic_warmup", &t.critic_warmup, "first steps that train the critic alone").in(0);
    add("trainer.max_ckpt_to_keep", &t.max_ckpt_to_keep, "checkpoints kept; -1: all").in(-1);
    add("trainer.resume_mode", &t.resume_mode, "auto: from the last checkpoint of default_local_dir").one_of("auto|disable|resume_path");
    add("trainer.resume_from_path", &t.resume_from_path, "the checkpoint of resume_path: a folder global_step_N");
    add("trainer.default_local_dir", &t.default_local_dir, "the run's folder: checkpoints, metrics, the trained model");
    add("trainer.log_samples", &t.log_samples, "samples a step that go to samples.jsonl").in(0, 1024);
    add("trainer.profile_steps", &t.profile_steps, "steps that trace.json shows stage by stage");
  }
};

}  // namespace weft::train
