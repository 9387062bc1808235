// options.hpp — everything a run can be told, as plain structs. Names and defaults are verl's; knobs.hpp maps its dotted names here.
// Counts of prompts, samples and tokens are i64; -1 (verl's null) is "not set". A learning rate is of a step: all its mini-batches use the same, as in verl.
// Fields marked "follows X" take X's value when knobs::resolve() runs and nobody set them.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace weft::train {

struct optimizer_options {
  double lr = 1e-6;  // actor 1e-6, critic 1e-5
  double weight_decay = 0.01;
  std::array<double, 2> betas{0.9, 0.999};
  double eps = 1e-8;
  double clip_grad = 1.0;                 // largest global norm of the gradient; 0: no clipping
  std::int64_t lr_warmup_steps = -1;      // steps; -1: from the ratio
  double lr_warmup_steps_ratio = 0;       // share of all steps
  std::string warmup_style = "constant";  // after the warm-up: constant, cosine
  double min_lr_ratio = 0;                // where cosine ends, as a share of lr
  std::string moment_dtype = "fp32";      // of AdamW's two moments: fp32, bf16, fp8 (eight bits and a scale for each block of 256)
  bool master_weights = true;             // fp32 weights beside the bf16 ones of a GPU; false: bf16 ones, rounded stochastically
};

struct data_options {
  std::vector<std::string> train_files, val_files;  // JSONL
  std::vector<std::string> train_weights;           // of train_files: their shares of a batch; empty: by their rows
  std::string prompt_key = "prompt", response_key, reward_fn_key = "data_source", ground_truth_key = "ground_truth";
  std::int64_t train_max_samples = -1, val_max_samples = -1;        // rows of all files; -1: all
  std::int64_t train_batch_size = 1024;                             // prompts a step (sft: rows a step)
  std::int64_t val_batch_size = -1;                                 // prompts at once; -1: all
  std::int64_t max_prompt_length = 512, max_response_length = 512;  // tokens
  bool shuffle = true;
  std::int64_t seed = -1;            // of the order of rows; follows seed
  std::string truncation = "error";  // a prompt that is too long: error, left, right, middle
  bool filter_overlong_prompts = false;
  struct chat_options {  // apply_chat_template_kwargs
    bool enable_thinking = true;
    std::string date_string = "26 Jul 2024";
  } chat;
};

struct actor_options {
  std::string path;                                                      // Hugging Face folder
  bool enable_gradient_checkpointing = true;                             // recompute activations in the backward pass
  std::int64_t ppo_mini_batch_size = 256;                                // prompts an optimizer step (each with its n samples)
  std::int64_t ppo_micro_batch_size_per_gpu = -1;                        // samples a micro-batch; -1: by tokens
  bool use_dynamic_bsz = false;                                          // micro-batches by tokens even if a size is set
  std::int64_t ppo_max_token_len_per_gpu = 16384;                        // tokens a micro-batch
  double clip_ratio = 0.2, clip_ratio_low = 0.2, clip_ratio_high = 0.2;  // low and high follow clip_ratio
  double clip_ratio_c = 3.0;                                             // dual clip
  std::string loss_mode = "vanilla";                                     // policy_loss.loss_mode
  double clip_cov_ratio = 2e-4, clip_cov_lb = 1, clip_cov_ub = 5;        // policy_loss.*, of clip_cov
  double kl_cov_ratio = 2e-4, ppo_kl_coef = 0.1;                         // policy_loss.*, of kl_cov
  double threshold_low = -1, threshold_high = -1;                        // policy_loss.*, of dppo_tv and dppo_kl: must be set
  double tau_pos = 1, tau_neg = 1.05;                                    // of sapo
  std::string loss_agg_mode = "token-mean";
  double loss_scale_factor = -1;  // of seq-mean-token-sum-norm; -1: max_response_length
  double entropy_coeff = 0;
  bool use_kl_loss = false;
  double kl_loss_coef = 0.001;
  std::string kl_loss_type = "low_var_kl";
  std::int64_t ppo_epochs = 1;  // passes over a rollout
  bool shuffle = false;         // mini-batches in a new order each pass
  optimizer_options optim;
};

struct val_options {  // rollout.val_kwargs
  std::int64_t n = 1, top_k = -1;
  double temperature = 0, top_p = 1;
  bool do_sample = false;  // false: greedy
};

struct rollout_options {
  std::int64_t n = 1;  // samples a prompt
  double temperature = 1;
  std::int64_t top_k = -1;  // -1: all
  double top_p = 1, min_p = 0;
  std::int64_t max_num_seqs = 1024;            // sequences that decode at once (slots)
  std::int64_t max_num_batched_tokens = 8192;  // tokens of one prefill
  std::string kv_cache_dtype = "auto";         // auto: the compute type; fp8
  std::int64_t kv_pages = 0;                   // pages of 64 tokens; 0: what the worst case needs, within memory
  val_options val_kwargs;
};

struct critic_options {
  std::string path;  // model.path; follows the actor's
  bool enable_gradient_checkpointing = true;
  optimizer_options optim{.lr = 1e-5};
  double cliprange_value = 0.5;
  std::string loss_agg_mode = "token-mean";        // follows the actor's
  std::int64_t ppo_mini_batch_size = 256;          // follows the actor's
  std::int64_t ppo_micro_batch_size_per_gpu = -1;  // follows the actor's
  std::int64_t ppo_max_token_len_per_gpu = 32768;  // tokens a micro-batch
  std::int64_t ppo_epochs = 1;                     // follows the actor's
  bool shuffle = false;                            // follows the actor's
};

struct ref_options {
  std::string path;  // model.path of the reference; follows the actor's
};

struct teacher_options {
  std::string path;  // model.path of the teacher (distill)
};

struct kl_ctrl_options {
  std::string type = "fixed";  // fixed, adaptive
  double kl_coef = 0.001, target_kl = 0.1;
  std::int64_t horizon = 10000;  // samples
};

struct filter_groups_options {  // dynamic sampling
  bool enable = false;
  std::string metric =
      "acc";  // what has to differ within a group: acc (without the length penalty), or the score: score, seq_reward, seq_final_reward
  std::int64_t max_num_gen_batches = 0;  // batches drawn for a step; 0: as many as it takes
};
struct rollout_correction_options {
  std::string rollout_is;                  // token, sequence; empty: no weights
  std::string rollout_is_threshold = "2";  // a number: weights are cut there; "low_high": weights outside become 0 (IcePop)
  std::string rollout_rs;                  // seq_mean_k1, seq_mean_k2, seq_mean_k3; empty: nothing is rejected
  double rollout_rs_threshold = -1;        // must be set with rollout_rs
  bool rollout_is_batch_normalize = false;
};
struct overlong_options {
  bool enable = false;
  std::int64_t len = -1;  // tokens before the longest answer in which the penalty rises; -1: a fifth of data.max_response_length
  double penalty_factor = 1;
};

struct algorithm_options {
  std::string name = "ppo";           // the recipe; presets.hpp says what it sets
  std::string adv_estimator = "gae";  // follows name; sft has none
  double gamma = 1, lam = 1;
  bool norm_adv_by_std_in_grpo = true;
  bool use_kl_in_reward = false;
  std::string kl_penalty = "kl";
  kl_ctrl_options kl_ctrl;
  filter_groups_options filter_groups;
  rollout_correction_options rollout_correction;
};

struct dpo_options {  // TRL's names and defaults
  std::string loss_type = "sigmoid";
  double beta = 0.1, label_smoothing = 0;
};
struct distill_options {
  std::int64_t top_k = -1;  // likeliest ids of the teacher; -1: all
};

struct hybrid_options {  // rows a step beside data.train_batch_size prompts
  std::vector<std::string> sft_files, dpo_files;
  std::int64_t sft_batch_size = 64, dpo_batch_size = 64;
};
struct task_weight_options {
  double sft = 0.4, ppo = 0.4, dpo = 0.2;
};

struct trainer_options {
  std::int64_t total_epochs = 30;               // passes over the training rows
  std::int64_t total_training_steps = -1;       // steps; -1: from total_epochs
  std::int64_t save_freq = -1, test_freq = -1;  // steps between; -1: only at the end
  bool val_before_train = true, val_only = false;
  std::int64_t critic_warmup = 0;      // first steps that train the critic alone
  std::int64_t max_ckpt_to_keep = -1;  // -1: all
  std::string resume_mode = "auto";    // auto, disable, resume_path
  std::string resume_from_path;
  std::string default_local_dir = "runs/weft";  // OUT: checkpoints, metrics, the trained model
  std::int64_t log_samples = 4;                 // samples a step that go to samples.jsonl
  std::vector<std::string> profile_steps;       // steps that trace.json shows stage by stage
};

struct reward_options {
  std::string function = "auto";  // auto (by data_source), exact_match, gsm8k, boxed, regex
  std::string pattern;            // of regex: its first group, or all of it, holds the answer
};

struct options {
  data_options data;
  reward_options reward;
  actor_options actor;
  rollout_options rollout;
  ref_options ref;
  teacher_options teacher;
  overlong_options overlong;  // reward_model.overlong_buffer
  critic_options critic;
  algorithm_options algorithm;
  dpo_options dpo;
  distill_options distill;
  hybrid_options hybrid;
  task_weight_options task_weights;
  trainer_options trainer;
  std::string device = "cpu";
  std::int64_t threads = 0;  // 0: one a core
  std::int64_t seed = 1;
  bool dry_run = false;            // print configuration, plan and memory, then stop
  std::string plan = "text";       // what dry_run prints: text (all of it), or the graph alone as dot, mermaid, stages
  bool explain = false;            // the same, and what each knob costs
  std::int64_t device_memory = 0;  // bytes a plan may take; 0: what the device has
};

}  // namespace weft::train
